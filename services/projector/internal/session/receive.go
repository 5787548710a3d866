package session

import (
	"context"
	"errors"
	"slices"
	"time"
)

// asks is how many messages the next receive waits for, those that were asked for
// before and may still come included. It waits for a share of the budget where
// this hold has none. It is 0 when waiting has ended before ctx, as draining begins: then
// nothing more is received.
func (h *hold) asks(waiting, ctx context.Context) (int, error) {
	most := h.cfg.BatchSize
	switch {
	case h.steady || h.single:
		most = 1
	case h.received > 0 && h.spent():
		return min(h.owed, most), nil // it is not carried in vain
	}
	each := h.expect()
	carrier, carries := h.receiver.(Carrier)
	switch stages := h.stages(); {
	case stages > 1 && h.owed > 0:
		// All that has come, and beyond that no more than leaves others on their way.
		most = max(min(h.fits(stages*most, each), int(h.budget.each()/each))/stages, min(h.carried(), most))
	case stages > 1:
		most = min(most, int(h.budget.each()/each)/stages)
	case !carries:
		most = h.fits(most, each)
	}
	most = max(most, 1)
	bytes, err := h.share.ask(waiting, h.unsettled+int64(most)*each, each)
	if err == nil && bytes-h.unsettled < each && waiting.Err() == nil {
		// All that there is for this hold is what is being settled.
		if err = h.settled(); err == nil {
			bytes, err = h.share.ask(waiting, int64(most)*each, each)
		}
	}
	if waiting.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if err != nil {
		return 0, err
	}
	most = max(min(int((bytes-h.unsettled)/each), most), 1)
	if carries {
		most, err = carrier.Turn(waiting, most, each)
	}
	if waiting.Err() != nil {
		return 0, context.Cause(ctx)
	}
	return most, err
}

// fits is how many messages, of at most limit, come in a time that leaves the lock room.
func (h *hold) fits(limit int, each int64) int {
	if fitter, ok := h.receiver.(Fitter); ok {
		return fitter.Fits(limit, each)
	}
	return limit
}

// expect is what a message of this session may weigh, by those before it, or by
// those of others.
func (h *hold) expect() int64 {
	if h.received > 0 {
		return h.scales.expect()
	}
	return h.Engine.scales.expect()
}

// weigh corrects the share by what has come, and returns what each message weighs.
func (h *hold) weigh(messages []Message, asked int) []int64 {
	each := weights(messages)
	heaviest := slices.Max(each)
	h.scales.note(heaviest)
	h.Engine.scales.note(heaviest)
	h.owed = max(h.owed, asked) - len(messages)
	h.short = len(messages) < asked
	h.present = 0
	for i, w := range each {
		h.present += w
		h.heaviest = max(h.heaviest, int64(len(messages[i].Body)))
	}
	h.account()
	return each
}

// account makes the share what is in hand, what is being settled, and what may come.
func (h *hold) account() {
	h.share.set(h.present + h.later + h.unsettled + int64(h.owed)*h.expect())
}

// receiveTimeout is how long the next receive waits for a message.
func (h *hold) receiveTimeout() time.Duration {
	switch {
	case h.received == 0:
		return h.cfg.FirstMessageTime
	case h.steady:
		return h.cfg.KeepTime
	}
	// The session may be empty by now; then a few round trips show it.
	return min(h.cfg.FirstMessageTime, 3*h.firstReceive+20*time.Millisecond)
}

// receive asks for the next messages. A receive that runs out of time is not an
// error. Where others' messages come in that time, these may be on their way behind
// them, and are waited for again, and so is the rest where the time ran out while
// messages came. The first message, which is there when a session is granted, is waited
// for while it is coming, for as long as the lock is good without a renewal.
func (h *hold) receive(waiting, ctx context.Context, limit int) (messages []Message, err error) {
	began := time.Now()
	granted, _ := h.lock.end()
	carrier, carries := h.receiver.(Carrier)
	for {
		more, cut, err := h.receiveOnce(waiting, ctx, limit-len(messages))
		messages = append(messages, more...)
		first := h.received == 0
		if err != nil || !carries || h.steady && !first || waiting.Err() != nil {
			return messages, err
		}
		if first && carrier.Coming() && time.Now().Before(granted) {
			continue
		}
		if again := !first && len(more) > 0 && cut || len(messages) == 0 && carrier.Busy(); !again ||
			len(messages) == limit || time.Since(began) > h.cfg.FirstMessageTime {
			return messages, nil
		}
	}
}

// receiveOnce receives once, and tells whether that ended with its time.
func (h *hold) receiveOnce(waiting, ctx context.Context, limit int) (messages []Message, cut bool, err error) {
	counted, _ := h.pace.receives(waiting) // it ends with an error where waiting does
	if waiting.Err() != nil {
		return nil, true, context.Cause(ctx)
	}
	attempt, cancel := context.WithTimeout(waiting, h.receiveTimeout())
	defer cancel()
	if h.steady && h.received > 0 {
		defer h.idlePolicy.wait(cancel)()
	}

	asked := time.Now()
	messages, err = h.receiver.Receive(attempt, limit)
	if h.received == 0 {
		h.firstReceive += time.Since(asked)
	}
	if h.steady && len(messages) > 0 {
		h.steady = h.waitedFor(asked, messages[0].EnqueuedAt)
	}
	h.received += len(messages)
	h.counts.Received.Add(int64(len(messages)))
	h.pace.received(time.Now(), len(messages), counted)
	if attempt.Err() != nil && ctx.Err() == nil && !errors.Is(err, ErrUndecodable) {
		err = nil
	}
	return messages, attempt.Err() != nil, err
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
