package servicebus

import (
	"fmt"
	"sync"

	"changerelay/services/projector/internal/session"
)

// refused are the sessions of which a message came that cannot be decoded. The client says
// nothing of it, but that no message came (azservicebus v1.11.0, receiveMessagesImpl).
type refused struct {
	mu       sync.Mutex
	sessions map[string]bool // guarded by mu: until they are granted again
}

func (r *refused) note(sessionID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sessions == nil {
		r.sessions = map[string]bool{}
	}
	r.sessions[sessionID] = true
}

// forget begins anew with a session that is granted: nothing has been asked for of it.
func (r *refused) forget(sessionID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sessions, sessionID)
}

// orUndecodable is err, which may be nil, as a session.ErrUndecodable where a message of the
// session was refused.
func (r *refused) orUndecodable(sessionID string, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.sessions[sessionID]:
		return err
	case err == nil:
		return fmt.Errorf("receive from session %q: %w", sessionID, session.ErrUndecodable)
	}
	return fmt.Errorf("%w: %w", session.ErrUndecodable, err)
}
