package servicebus

import (
	"fmt"

	"changerelay/services/projector/internal/session"
)

// orUndecodable is err, which may be nil, as a session.ErrUndecodable where a message of the
// session was refused. The client says nothing of it, but that no message came (azservicebus
// v1.11.0, receiveMessagesImpl).
func (r *receiver) orUndecodable(err error) error {
	switch {
	case !r.refused.Has(r.sessionID):
		return err
	case err == nil:
		return fmt.Errorf("receive from session %q: %w", r.sessionID, session.ErrUndecodable)
	}
	return fmt.Errorf("%w: %w", session.ErrUndecodable, err)
}
