package session

import (
	"context"
	"errors"
	"sync"
	"time"
)

// restRoom is how many sessions may rest for each that may be held. One costs a
// link and its messages' place in the broker, and no slot.
const restRoom = 16

// rests are the sessions that are left alone for a while, since they alone could
// not be applied. Their locks are kept meanwhile, though not renewed, so that the
// broker offers others, and they take no slot.
type rests struct {
	initial, most time.Duration
	room          int
	resting       sync.WaitGroup

	mu   sync.Mutex
	held int             // guarded by mu: at most room
	last map[string]rest // guarded by mu: of sessions that have failed lately
}

type rest struct {
	length time.Duration
	began  time.Time
}

// note notes how a hold of the session has ended, and tells how long the session
// is to rest, no longer than its lock holds; 0 for not. Whoever gets a time calls
// leave when it is over.
func (r *rests) note(id string, err error, lockEnds time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		delete(r.last, id)
	}
	if !errors.Is(err, ErrRest) {
		return 0
	}
	now := time.Now()
	for other, rest := range r.last {
		// One that did not come again is with another replica, or has been mended.
		if now.Sub(rest.began) > 10*r.most {
			delete(r.last, other)
		}
	}
	length := min(max(r.initial, 2*r.last[id].length), r.most)
	r.last[id] = rest{length, now}
	length = min(length, lockEnds.Sub(now))
	if length <= 0 || r.held == r.room {
		return 0
	}
	r.held++
	return length
}

// lately tells whether the session was left alone and has not been applied since.
func (r *rests) lately(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, found := r.last[id]
	return found
}

func (r *rests) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held--
}

// giveBack gives a session back after its hold has ended with err: at once, or
// after its rest, which ends when draining begins. It tells whether it rests.
func (e *Engine) giveBack(draining, work context.Context, receiver Receiver, err error, lockEnds time.Time) bool {
	length := e.rests.note(receiver.SessionID(), err, lockEnds)
	if length == 0 {
		e.release(work, receiver)
		return false
	}
	e.counts.Resting.Add(1)
	e.rests.resting.Go(func() {
		defer e.counts.Resting.Add(-1)
		defer e.rests.leave()
		timer := time.NewTimer(length)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-draining.Done():
		}
		e.release(work, receiver)
	})
	return true
}
