package broker

import (
	"bytes"
	"slices"
	"time"
)

// RenewSessionLock extends the lock of the session that the receiver holds.
// It and the receiver's other management operations fail with
// com.microsoft:session-lock-lost once the receiver does not hold it. Requests
// on $management name the receiver's link in associated-link-name.
func (r *Receiver) RenewSessionLock() (time.Time, error) {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	x, err := r.held(time.Now())
	if err != nil {
		return time.Time{}, err
	}
	x.renew(time.Now())
	return x.lockedUntil, nil
}

// SessionState is nil when none is set.
func (r *Receiver) SessionState() ([]byte, error) {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	x, err := r.held(time.Now())
	if err != nil {
		return nil, err
	}
	return bytes.Clone(x.state), nil
}

// SetSessionState with nothing clears it.
func (r *Receiver) SetSessionState(state []byte) error {
	r.b.mu.Lock()
	now := time.Now()
	x, err := r.held(now)
	if err != nil {
		r.b.mu.Unlock()
		return err
	}
	x.setState(state, now)
	return r.b.unlockAndCommit()
}

// held is the session, for a request that names it.
func (r *Receiver) held(now time.Time) (*session, error) {
	if err := r.store.gate.busy(now); err != nil {
		return nil, err
	}
	r.checkLock(now)
	if r.session == nil {
		return nil, errSessionLockLost()
	}
	return r.session, nil
}

func (x *session) setState(state []byte, now time.Time) {
	x.state = nil
	if len(state) > 0 {
		x.state = bytes.Clone(state)
	}
	x.updatedAt = now
	x.store.b.log.state(x)
}

// RenewSessionLock extends the lock of a session, whoever holds it.
func (b *Broker) RenewSessionLock(path, sessionID string) (time.Time, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	x, err := b.lockedSession(path, sessionID, now)
	if err != nil {
		return time.Time{}, err
	}
	x.renew(now)
	return x.lockedUntil, nil
}

// GetSessionState returns nil when none is set.
func (b *Broker) GetSessionState(path, sessionID string) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	x, err := b.lockedSession(path, sessionID, time.Now())
	if err != nil {
		return nil, err
	}
	return bytes.Clone(x.state), nil
}

// SetSessionState of a locked session; nil clears it.
func (b *Broker) SetSessionState(path, sessionID string, state []byte) error {
	b.mu.Lock()
	now := time.Now()
	x, err := b.lockedSession(path, sessionID, now)
	if err != nil {
		b.mu.Unlock()
		return err
	}
	x.setState(state, now)
	return b.unlockAndCommit()
}

func (b *Broker) lockedSession(path, sessionID string, now time.Time) (*session, error) {
	s, err := b.receivable(path, now)
	if err != nil {
		return nil, err
	}
	if s.sessions == nil {
		return nil, errSessionNotSupported()
	}
	x := s.sessions[sessionID]
	if x == nil || x.holder == nil {
		return nil, errSessionLockLost()
	}
	if !now.Before(x.lockedUntil) {
		x.expire(now)
		return nil, errSessionLockLost()
	}
	return x, nil
}

// ListSessions lists session ids in order: with updatedSince zero those that
// have messages or a state, else those whose state was set since. skip is the
// number of ids to pass over.
func (b *Broker) ListSessions(path string, updatedSince time.Time, skip, top int) ([]string, error) {
	ids, err := b.sessionIDs(path, updatedSince)
	if err != nil {
		return nil, err
	}
	slices.Sort(ids)
	ids = ids[min(max(skip, 0), len(ids)):]
	return ids[:min(max(top, 0), len(ids))], nil
}

func (b *Broker) sessionIDs(path string, updatedSince time.Time) ([]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, err := b.receivable(path, time.Now())
	if err != nil {
		return nil, err
	}
	if s.sessions == nil {
		return nil, errSessionNotSupported()
	}
	var ids []string
	for id, x := range s.sessions {
		wanted := x.messages > 0 || x.state != nil
		if !updatedSince.IsZero() {
			wanted = x.updatedAt.After(updatedSince)
		}
		if wanted {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
