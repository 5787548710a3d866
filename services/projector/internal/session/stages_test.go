package session_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/projector/internal/session"
)

// What is asked for ahead does not make a hold longer than its share of messages, but
// for a batch.
func TestPipeline_AsksAheadForNoMoreThanTheSessionsShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		b.put("a", 1000)
		cfg := one()
		cfg.HoldMessages = 125
		byHold := map[int]int{}
		h.apply = func(_ context.Context, _ string, messages []session.Message) ([]session.Verdict, error) {
			accepts, _, _ := b.counts()
			byHold[accepts] += len(messages)
			time.Sleep(30 * time.Millisecond)
			return make([]session.Verdict, len(messages)), nil
		}
		_, stop := runAt(t, cfg, carrying{broker: b, seen: &asking{}}, b, h)
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		_ = stop()
		for hold, n := range byHold {
			if n > cfg.HoldMessages+cfg.BatchSize {
				t.Errorf("hold %d: %d messages, want its share of %d and a batch at most", hold, n, cfg.HoldMessages)
			}
		}
	})
}

// While a batch is applied the oldest message in hand is of the one before it, until
// that is settled.
func TestPipeline_TheOldestInHandIsTheOneThatIsBeingSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		first := time.Now()
		b.put("a", 10)
		time.Sleep(time.Second)
		b.put("a", 20)
		b.onSettle = func(context.Context, *receiver, session.Message) error {
			time.Sleep(2 * time.Second)
			return nil
		}
		var engine atomic.Pointer[session.Engine]
		h.apply = func(_ context.Context, _ string, messages []session.Message) ([]session.Verdict, error) {
			time.Sleep(time.Second) // the batch before this one is being settled
			if oldest, _ := engine.Load().Oldest(); messages[0].SequenceNumber == 11 && !oldest.Equal(first) {
				t.Errorf("the oldest in hand is of %s after the first, want the first", oldest.Sub(first))
			}
			if n := engine.Load().InHand(); messages[0].SequenceNumber == 11 && n != 20 {
				t.Errorf("%d messages in hand, want the 10 that are being settled and the 10 that are applied", n)
			}
			if messages[0].SequenceNumber == 11 {
				time.Sleep(2 * time.Second) // the batch before this one is settled
				if n := engine.Load().InHand(); n != 10 {
					t.Errorf("%d messages in hand, want the 10 that are applied", n)
				}
			}
			return make([]session.Verdict, len(messages)), nil
		}
		e, stop := runAt(t, one(), carrying{broker: b}, b, h)
		engine.Store(e)
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		_ = stop()
	})
}

// A session that is asked for one message at a time, and one that has shown that
// nothing waits, are asked for nothing ahead: it would take bytes, and may come in vain.
func TestPipeline_AsksNothingAheadWhereNothingWaits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		messages int
		keep     time.Duration
	}{"steady": {1, time.Second}, "short": {7, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBroker()
				seen := &asking{}
				cfg := small()
				cfg.KeepTime = tt.keep
				_, stop := runAt(t, cfg, carrying{broker: b, seen: seen}, b, newHandler(b))
				for range 20 {
					b.put("a", tt.messages)
					until(t, "it is settled", func() bool { return b.left() == 0 })
					time.Sleep(100 * time.Millisecond)
				}
				_ = stop()
				if accepts, _, _ := b.counts(); seen.asks != 0 || tt.keep > 0 && accepts == 20 {
					t.Errorf("asked ahead %d times in %d holds, want never, and a steady session kept", seen.asks, accepts)
				}
			})
		})
	}
}

// A hold whose share of the budget is what it settles receives no more before that is
// settled.
func TestPipeline_ReceivesNoMoreThanItsShareBesideWhatIsSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const each = 1 << 20
		b := heavy(1, 20, each-1<<10)
		b.onSettle = func(context.Context, *receiver, session.Message) error {
			time.Sleep(time.Second)
			return nil
		}
		most := 0
		b.onReceive = func(r *receiver) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			most = max(most, r.given-r.settled)
			return nil
		}
		cfg := one()
		cfg.MaxBytes = 8 * each // one for each of eight
		_, stop := runAt(t, cfg, carrying{broker: b}, b, newHandler(b))
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		_ = stop()
		if most > 0 {
			t.Errorf("%d messages were not settled when the next was asked for, want none: it has room for one", most)
		}
	})
}
