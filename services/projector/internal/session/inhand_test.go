package session_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/projector/internal/session"
)

func TestInHand_TheOldestMessageInHandIsKnownUntilItIsSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		b.deliver = func(messages []session.Message) []session.Message {
			for i := range messages {
				messages[i].EnqueuedAt = time.Unix(1000+messages[i].SequenceNumber, 0)
			}
			return messages
		}
		done := 0 // how many of the first batch are done before the outage
		over := make(chan struct{})
		h.apply = func(_ context.Context, _ string, m []session.Message) ([]session.Verdict, error) {
			select {
			case <-over:
				return make([]session.Verdict, len(m)), nil
			default:
			}
			verdicts := make([]session.Verdict, 2-done)
			done = 2
			return verdicts, errors.New("outage")
		}
		b.put("order-1", 5)
		engine, stop := run(t, small(), b, h)
		until(t, "two messages are settled", func() bool { return engine.Counts().Completed.Load() == 2 })
		synctest.Wait()
		if at, some := engine.Oldest(); !some || at.Unix() != 1003 {
			t.Errorf("got %s, %v, want when the third message was stored", at, some)
		}
		close(over)
		until(t, "all are settled", func() bool { return engine.Counts().Completed.Load() == 5 })
		synctest.Wait()
		if at, some := engine.Oldest(); some {
			t.Errorf("got %s, want none", at)
		}
		if err := stop(); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
	})
}

func TestInHand_AMessageOfASessionThatWentBackIsNotInHand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		h.apply = func(context.Context, string, []session.Message) ([]session.Verdict, error) {
			return nil, errors.New("outage")
		}
		b.put("order-1", 5)
		engine, stop := run(t, small(), b, h)
		until(t, "applying fails", func() bool { return engine.Counts().Retries.Load() > 0 })
		if _, some := engine.Oldest(); !some {
			t.Error("nothing is in hand, want the messages that cannot be applied")
		}
		if err := stop(); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		if at, some := engine.Oldest(); some {
			t.Errorf("got %s, want none", at)
		}
	})
}

// Of what is applied in parts, those that are not applied yet are in hand as well.
func TestInHand_CountsWhatIsAppliedInParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := bombs(t, 1, 20, 40)
		h := newHandler(b)
		var engine atomic.Pointer[session.Engine]
		parts := 0
		h.apply = func(_ context.Context, _ string, messages []session.Message) ([]session.Verdict, error) {
			time.Sleep(time.Millisecond) // what was applied before is settled
			e := engine.Load()
			left := e.Counts().Received.Load() - e.Counts().Completed.Load()
			if int64(len(messages)) < left {
				parts++
			}
			if n := e.InHand(); int64(n) != left {
				t.Errorf("%d messages in hand, want %d: all that is received and not settled", n, left)
			}
			return make([]session.Verdict, len(messages)), nil
		}
		cfg := one()
		cfg.MaxBytes = 4 << 20
		e, stop := run(t, cfg, b, h)
		engine.Store(e)
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		_ = stop()
		if parts == 0 {
			t.Error("nothing was applied in parts")
		}
	})
}
