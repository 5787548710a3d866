package session

import (
	"errors"
	"slices"
	"sync"
	"time"
)

// ErrUndecodable in an error of a Receiver means that a message that was asked for cannot
// be decoded, and that the receiver has ended for it: nothing more is received or settled
// by it.
var ErrUndecodable = errors.New("a message of the session cannot be decoded")

// errStuck is an ErrRest of a session whose next message could not be decoded a moment ago.
var errStuck = errors.New("its next message cannot be decoded")

// undecodable are the sessions in which a message could not be decoded lately. Their
// messages are received one by one, so that those before it are applied and settled. Once
// it is the next, the session is left alone between two attempts.
type undecodable struct {
	most time.Duration // of a rest

	mu   sync.Mutex
	last map[string]*stuck // guarded by mu: by session
}

type stuck struct {
	since, seen time.Time
	within      int  // it is among as many messages that come next
	rests       bool // the session is left alone the next time that it comes
}

// begins tells how the session is held this time: with its messages received one by one,
// or left alone.
func (u *undecodable) begins(id string) (single, rests bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.last[id]
	if s == nil {
		return false, false
	}
	rests, s.rests = s.rests, false
	return true, rests
}

// ended notes how a hold of the session ended. Where all that it received is settled, the
// message is gone once the session has run empty, or all that it was among has come.
func (u *undecodable) ended(id string, err error, h *hold) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.last[id]
	if s == nil && errors.Is(err, ErrUndecodable) {
		s = &stuck{since: time.Now()}
		u.last[id] = s
	}
	if s == nil {
		return
	}
	s.seen = time.Now()
	switch {
	case errors.Is(err, ErrUndecodable):
		s.within, s.rests = h.received+h.owed, h.received == 0
	case err == nil:
		if s.within -= h.received; h.empty || s.within <= 0 {
			delete(u.last, id)
		}
	}
}

// sessions are those that there are, and since when the first of them is. One that did not
// come again is with another replica, or has been mended.
func (u *undecodable) sessions() (ids []string, since time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for id, s := range u.last {
		if time.Since(s.seen) > 10*u.most {
			delete(u.last, id)
			continue
		}
		ids = append(ids, id)
		if since.IsZero() || s.since.Before(since) {
			since = s.since
		}
	}
	slices.Sort(ids)
	return ids, since
}
