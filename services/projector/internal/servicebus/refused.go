package servicebus

import (
	"errors"
	"fmt"

	"changerelay/services/projector/internal/session"
)

// orUndecodable is err, which may be nil, as a session.ErrUndecodable where a message of the
// session was refused, of which the client says no more than that no message came
// (azservicebus v1.11.0, receiveMessagesImpl), or where the client cannot read one.
func (r *receiver) orUndecodable(err error) error {
	switch {
	case !r.refused.Has(r.sessionID) && !errors.Is(err, errUnreadable):
		return err
	case err == nil:
		return fmt.Errorf("receive from session %q: %w", r.sessionID, session.ErrUndecodable)
	}
	return fmt.Errorf("%w: %w", session.ErrUndecodable, err)
}
