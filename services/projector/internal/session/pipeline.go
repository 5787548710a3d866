package session

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// stages are where the messages of a pipelined hold are: on their way, being
	// applied, being settled.
	stages = 3
	// aheadBatches is how many batches may be on their way at most, and aheadTime how
	// long it may take to apply them.
	aheadBatches = 4
	aheadTime    = time.Second
)

// pipeline is what a hold of a Carrier does at once with applying a batch: the
// next ones are asked for, and the one before is settled. A batch is applied after
// the one before it was, and settled after that was settled.
type pipeline struct {
	// end ends the hold's context.
	end context.CancelCauseFunc
	// wary: the session was left alone lately, and may be again. What was asked for
	// ahead would come in vain.
	wary bool
	// applied is how many messages were applied.
	applied int
	// present and unsettled are what the batch weighs that is in hand, and the one
	// that is settled behind it; later is what was received to be applied after it.
	present, unsettled, later int64
	// settler settles a batch, or is nil.
	settler *errgroup.Group
	// after are the messages that were received to be applied after the batch in hand.
	after []Message
}

// stages is how many batches this hold works on at once.
func (h *hold) stages() int {
	if _, carries := h.receiver.(Carrier); !carries || h.wary || h.steady || h.short || h.received == 0 {
		return 1
	}
	return stages
}

// askAhead asks for the batches after the one in hand, where that was full: no more
// than the connection brings and the budget has room for, nor, but for one batch,
// than can be applied in aheadTime, at the rate of this hold, before the session has
// had its share.
func (h *hold) askAhead(ctx context.Context) error {
	if h.stages() == 1 || h.spent() {
		return nil
	}
	n := h.cfg.BatchSize
	if took := time.Since(h.began); h.applied > 0 && took > 0 {
		n = max(n, int(float64(h.applied)*min(h.cfg.HoldTime-took, aheadTime).Seconds()/took.Seconds()))
	}
	each := max(h.expect(), h.Engine.scales.expect())
	n = h.fits(min(n, aheadBatches*h.cfg.BatchSize, h.cfg.HoldMessages-h.received), each)
	used := h.present + h.unsettled
	bytes, err := h.share.ask(ctx, used+int64(n)*each, 0)
	n = min(n, int((bytes-used)/each))
	if err != nil || n <= h.owed {
		h.account()
		return err
	}
	h.owed = n
	h.account()
	return h.receiver.(Carrier).Ask(n)
}

// maySettleBehind tells whether the next batch may be received and applied, or after
// the last one the slot go on, while this one is settled: all of it is completed.
func (h *hold) maySettleBehind(verdicts []Verdict) bool {
	if h.stages() == 1 && !h.runEmpty() {
		return false
	}
	for i := range verdicts {
		if verdicts[i].DeadLetter {
			return false
		}
	}
	return true
}

// soon is how long the first message of a session takes, at most, where what has not
// come by the end of a receive is not on its way.
const soon = 50 * time.Millisecond

// runEmpty tells whether the batch in hand is the last one: where messages come slowly,
// some may while it is settled.
func (h *hold) runEmpty() bool { return h.short && h.firstReceive < soon }

// settleBehind settles a batch while the hold goes on. Its failure ends the hold.
func (h *hold) settleBehind(ctx context.Context, messages []Message, verdicts []Verdict) {
	h.settler = &errgroup.Group{}
	h.inHand.note(h, func(l *left) { l.settling, l.present = partOf(messages, nil), partOf(h.after, nil) })
	h.present, h.unsettled = 0, h.present
	h.applied += len(messages)
	h.settler.Go(func() error {
		err := h.settle(ctx, messages, verdicts)
		if err != nil {
			h.end(err)
			return err
		}
		h.inHand.note(h, func(l *left) { l.settling = part{} })
		return nil
	})
}

// settled waits until the batch before is settled.
func (h *hold) settled() error {
	if h.settler == nil {
		return nil
	}
	err := h.settler.Wait()
	h.settler, h.unsettled = nil, 0
	h.account()
	return err
}

// noteInHand notes what is in hand: messages, and those after them.
func (h *hold) noteInHand(messages []Message) {
	h.inHand.note(h, func(l *left) { l.present = partOf(messages, h.after) })
}
