package decodable

import "sync"

// Refused are the sessions of Service Bus of which a message was refused, until they are
// granted again. The zero value has none.
type Refused struct {
	mu       sync.Mutex
	sessions map[string]bool // guarded by mu
}

// Note notes a session, for Conn.
func (r *Refused) Note(sessionID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sessions == nil {
		r.sessions = map[string]bool{}
	}
	r.sessions[sessionID] = true
}

// Forget begins anew with a session that is granted: nothing has been asked for of it.
func (r *Refused) Forget(sessionID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sessions, sessionID)
}

// Has tells whether a message of the session was refused.
func (r *Refused) Has(sessionID string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sessions[sessionID]
}
