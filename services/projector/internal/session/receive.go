package session

import (
	"context"
	"time"
)

// asks is how many messages the next receive asks for.
func (h *hold) asks() int {
	if h.steady {
		return 1
	}
	return h.cfg.BatchSize
}

// patience is how long the next receive waits for a message.
func (h *hold) patience() time.Duration {
	switch {
	case h.received == 0:
		return h.cfg.FirstMessageTime
	case h.steady:
		return h.cfg.KeepTime
	}
	// The session may be empty by now; then a few round trips show it.
	return min(h.cfg.FirstMessageTime, 3*h.firstReceive+20*time.Millisecond)
}

// receive asks for the next messages. A receive that runs out of time is not an error.
func (h *hold) receive(draining, ctx context.Context, limit int) ([]Message, error) {
	attempt, cancel := context.WithTimeout(ctx, h.patience())
	defer cancel()
	stop := context.AfterFunc(draining, cancel)
	defer stop()
	if h.steady && h.received > 0 {
		defer h.keeping.wait(cancel)()
	}

	asked := time.Now()
	messages, err := h.receiver.Receive(attempt, limit)
	if h.received == 0 {
		h.firstReceive = time.Since(asked)
	}
	if h.steady && len(messages) > 0 {
		h.steady = h.waitedFor(asked, messages[0].EnqueuedAt)
	}
	h.received += len(messages)
	h.counts.Received.Add(int64(len(messages)))
	if err != nil && attempt.Err() != nil && ctx.Err() == nil {
		err = nil
	}
	return messages, err
}

// waitedFor tells whether a message was not there yet when it was asked for. One
// that was shows that one at a time is too slow for its session. The broker's
// clock may be off, by no more than the quickest message took; so what was
// enqueued that long before the asking was there.
func (h *hold) waitedFor(asked, enqueued time.Time) bool {
	took := time.Since(enqueued)
	if h.received == 0 {
		h.quickest = took
		return true
	}
	there := asked.Sub(enqueued) > h.quickest
	h.quickest = min(h.quickest, took)
	return !there
}
