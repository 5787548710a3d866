package session

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// settle settles messages whose effects are stored, several at once. The first
// failure ends it: what is left comes again and is found applied.
func (h *hold) settle(ctx context.Context, messages []Message, verdicts []Verdict) error {
	if len(messages) == 0 {
		return nil
	}
	group, each := errgroup.WithContext(ctx)
	group.SetLimit(h.cfg.MaxSettles)
	for i := range messages {
		if each.Err() != nil {
			break
		}
		group.Go(func() error { return h.settleOne(each, messages[i], verdicts[i]) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// settleOne settles one message within SettleTime, and never past the lock.
func (h *hold) settleOne(ctx context.Context, m Message, v Verdict) error {
	deadline, err := h.lock.end()
	if err != nil {
		return err
	}
	if limit := time.Now().Add(h.cfg.SettleTime); limit.Before(deadline) {
		deadline = limit
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	if err := h.receiver.Settle(ctx, m, v); err != nil {
		h.counts.SettlesFailed.Add(1)
		return fmt.Errorf("settle message %d: %w", m.SequenceNumber, err)
	}
	if v.DeadLetter {
		h.counts.DeadLettered.Add(1)
		h.log.Warn().Str("message_id", m.ID).Str("reason", v.Reason).Str("description", v.Description).Msg("message dead-lettered")
		return nil
	}
	h.counts.Completed.Add(1)
	return nil
}
