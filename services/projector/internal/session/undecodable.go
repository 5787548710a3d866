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

// ended notes how a hold of the session ended, in which so many messages were received.
func (u *undecodable) ended(id string, err error, received int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s, now := u.last[id], time.Now()
	if err == nil {
		delete(u.last, id)
		return
	}
	if errors.Is(err, ErrUndecodable) {
		if s == nil {
			s = &stuck{since: now}
			u.last[id] = s
		}
		s.rests = received == 0
	}
	if s != nil {
		s.seen = now
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
