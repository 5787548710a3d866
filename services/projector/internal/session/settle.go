package session

import (
	"context"
	"fmt"
	"time"

	"github.com/rs/zerolog"
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

// settleOne settles one message. Where the broker throttles it waits as long as it
// is asked to, while the lock is renewed: to give the session back would cost an
// accept, a receive and a write on top. All settlements then keep a pace, and where all
// are refused hardly more than one is tried after each pause.
func (h *hold) settleOne(ctx context.Context, m Message, v Verdict) error {
	for {
		if err := h.pace.settles(ctx); err != nil {
			return err
		}
		err := h.trySettle(ctx, m, v)
		busy, throttled := asBusy(err)
		if !throttled {
			return err
		}
		h.pace.refuse(time.Now(), busy.Pause)
		h.counts.SettlesThrottled.Add(1)
		if h.settling.Throttled(err) {
			h.throttled().Warn().Err(err).Msg("settling messages is throttled, waiting")
		}
		h.step.Store(time.Now().UnixNano())
		if err := busy.wait(ctx); err != nil {
			return err
		}
	}
}

// throttled is the log for what the broker throttles.
func (h *hold) throttled() *zerolog.Logger {
	log := h.log.Sample(h.throttling)
	return &log
}

// trySettle settles one message within SettleTime, and never past the lock, with which
// ctx ends: the lock may be renewed while the answer is on its way.
func (h *hold) trySettle(ctx context.Context, m Message, v Verdict) error {
	if _, err := h.lock.end(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, h.cfg.SettleTime)
	defer cancel()
	if err := h.receiver.Settle(ctx, m, v); err != nil {
		if _, throttled := asBusy(err); !throttled {
			h.counts.SettlesFailed.Add(1)
		}
		return fmt.Errorf("settle message %d: %w", m.SequenceNumber, err)
	}
	h.pace.settled(time.Now())
	if lasted, ended := h.settling.Recovered(); ended {
		h.throttled().Info().Dur("lasted_ms", lasted).Msg("settling messages works again")
	}
	if v.DeadLetter {
		h.counts.DeadLettered.Add(1)
		h.log.Warn().Str("message_id", m.ID).Str("reason", v.Reason).Str("description", v.Description).Msg("message dead-lettered")
		return nil
	}
	h.counts.Completed.Add(1)
	return nil
}
