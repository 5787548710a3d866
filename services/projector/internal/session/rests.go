package session

import (
	"context"
	"errors"
	"sync"
	"time"
)

// restRoom is how many sessions may rest for each that may be held. One costs a
// link, for which a part of the budget is set aside, and its messages' place in the
// broker, and no slot.
const restRoom = 16

// rests are the sessions that are left alone for a while, since they alone could
// not be applied. Their locks are kept meanwhile, though not renewed, so that the
// broker offers others, and they take no slot.
type rests struct {
	initial, most time.Duration
	room          int
	roomBytes     int64
	resting       sync.WaitGroup

	mu    sync.Mutex
	held  int             // guarded by mu: at most room
	bytes int64           // guarded by mu: that they take of the budget, at most roomBytes
	last  map[string]rest // guarded by mu: of sessions that have failed lately
}

type rest struct {
	length time.Duration
	began  time.Time
}

// note notes how a hold of the session has ended, and tells how long the session
// is to rest, no longer than its lock holds; 0 for not. Whoever gets a time calls
// leave when it is over. bytes are what it takes of the budget meanwhile.
func (r *rests) note(id string, err error, lockEnds time.Time, bytes int64) time.Duration {
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
	if length <= 0 || r.held == r.room || r.bytes+bytes > r.roomBytes {
		return 0
	}
	r.held, r.bytes = r.held+1, r.bytes+bytes
	return length
}

// lately tells whether the session was left alone and has not been applied since.
func (r *rests) lately(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, found := r.last[id]
	return found
}

func (r *rests) leave(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held, r.bytes = r.held-1, r.bytes-bytes
}

// restBytes is what the session takes of the budget at rest. Its link keeps a buffer as
// large as the heaviest message (go-amqp v1.7.0, Receiver.msgBuf).
func (h *hold) restBytes() int64 { return (h.cfg.RestBytes + h.heaviest) / h.cfg.Copies }

// restsUntil is until when the session may be left alone, whose hold has ended with err.
// At rest it is in no budget, so first what was asked for is withdrawn; where that
// fails, or draining begins, it does not rest.
func (h *hold) restsUntil(draining context.Context, err error) time.Time {
	if !errors.Is(err, ErrRest) {
		return time.Time{}
	}
	if carrier, carries := h.receiver.(Carrier); carries && h.owed > 0 {
		ctx, cancel := context.WithTimeout(draining, h.cfg.CloseTime)
		defer cancel()
		if err := carrier.Withdraw(ctx); err != nil {
			h.log.Debug().Err(err).Msg("messages may still come to the session, not left alone")
			return time.Time{}
		}
	}
	ends, _ := h.lock.end()
	return ends
}

// giveBack gives the session back, whose hold has ended with err: at once, or after its
// rest, which ends when draining begins. It tells whether it rests.
func (h *hold) giveBack(draining context.Context, err error) bool {
	bytes := h.restBytes()
	length := h.rests.note(h.receiver.SessionID(), err, h.restsUntil(draining, err), bytes)
	if length == 0 {
		h.goBack(draining, err)
		return false
	}
	h.counts.Resting.Add(1)
	h.budget.setAside(bytes)
	h.rests.resting.Go(func() {
		defer h.counts.Resting.Add(-1)
		defer h.budget.setAside(-bytes)
		defer h.rests.leave(bytes)
		timer := time.NewTimer(length)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-draining.Done():
		}
		h.goBack(draining, err)
	})
	return true
}

// goBack gives the session back. Where messages of it are not settled there is something
// to do from then on, whatever accepts have found before.
func (h *hold) goBack(draining context.Context, err error) {
	h.inHand.forget(h)
	h.release(draining, h.receiver)
	if err != nil {
		h.idle.Store(0)
	}
}
