package session_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/projector/internal/session"
)

// one is the configuration of a hold by itself.
func one() session.Config {
	cfg := small()
	cfg.MaxSessions, cfg.AcceptFloor, cfg.HoldTime = 1, 1, time.Hour
	return cfg
}

// While a batch is applied the next one is on its way, and the one before it is
// settled: each of the three takes a second.
func TestPipeline_ReceivesAppliesAndSettlesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		const batches = 20
		b.put("a", 10*batches)
		seen := &asking{}
		b.onSettle = func(_ context.Context, _ *receiver, m session.Message) error {
			b.mu.Lock()
			if done := len(b.completed["a"]); done < int(m.SequenceNumber-1)/10*10 {
				b.violation("message %d is settled when %d were", m.SequenceNumber, done)
			}
			b.mu.Unlock()
			if !slices.Contains(h.seen("a"), m.SequenceNumber) {
				b.violation("message %d is settled and was not applied", m.SequenceNumber)
			}
			time.Sleep(time.Second)
			return nil
		}
		h.apply = func(_ context.Context, _ string, messages []session.Message) ([]session.Verdict, error) {
			time.Sleep(time.Second)
			return make([]session.Verdict, len(messages)), nil
		}
		began := time.Now()
		_, stop := runAt(t, one(), carrying{broker: b, seen: seen}, b, h)
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		if took := time.Since(began); took > (batches+2)*time.Second {
			t.Errorf("%d batches took %s, want a second each", batches, took)
		}
		_ = stop()
		if accepts, _, _ := b.counts(); accepts != 1 || seen.asks < batches/5 {
			t.Errorf("got %d accepts, and asked ahead %d times; want 1, and again and again", accepts, seen.asks)
		}
		if got := h.seen("a"); !slices.IsSorted(got) || len(got) != 10*batches {
			t.Errorf("applied %d messages, in order %t; want %d in order", len(got), slices.IsSorted(got), 10*batches)
		}
	})
}

// A settlement that fails while the next batch is applied ends the hold: that batch
// is cut off, and neither settled nor followed by another.
func TestPipeline_AFailedSettlementEndsTheHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		b.put("a", 50)
		failure := errors.New("the link has ended")
		var failed atomic.Bool
		b.onSettle = func(_ context.Context, _ *receiver, m session.Message) error {
			if m.SequenceNumber == 15 && !failed.Swap(true) {
				time.Sleep(time.Second)
				return failure
			}
			return nil
		}
		var cut error
		h.apply = func(ctx context.Context, _ string, messages []session.Message) ([]session.Verdict, error) {
			select {
			case <-ctx.Done():
				cut = context.Cause(ctx)
				return nil, cut
			case <-time.After(10 * time.Second):
				return make([]session.Verdict, len(messages)), nil
			}
		}
		engine, stop := runAt(t, one(), carrying{broker: b}, b, h)
		until(t, "the session is given back", func() bool { _, closes, _ := b.counts(); return closes == 1 })
		if !errors.Is(cut, failure) {
			t.Errorf("the batch behind it ended with %v, want it cut off by the failure", cut)
		}
		if got := h.seen("a"); len(got) != 20 || b.left() != 50-19 {
			t.Errorf("%d applied and %d left, want 20 and all but 19", len(got), b.left())
		}
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		_ = stop()
		if engine.Counts().GivenBack.Load() != 1 {
			t.Errorf("given back: got %d, want 1", engine.Counts().GivenBack.Load())
		}
	})
}

// Nothing is settled or applied after the lock, in whatever stage it is lost.
func TestPipeline_ALostLockEndsEveryStage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		b.put("a", 50)
		b.onRenew = func(ctx context.Context, _ *receiver) error {
			<-ctx.Done()
			return ctx.Err()
		}
		var hangs atomic.Int64
		b.onSettle = func(ctx context.Context, _ *receiver, m session.Message) error {
			if m.SequenceNumber > 10 && hangs.Add(1) <= 10 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		cfg := one()
		cfg.SettleTime = time.Hour
		engine, stop := runAt(t, cfg, carrying{broker: b}, b, h)
		until(t, "the lock is lost", func() bool { return engine.Counts().LocksLost.Load() == 1 })
		b.onRenew = nil
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		_ = stop() // what was forbidden is said now
	})
}

// A batch of which a message is dead-lettered is settled before the next is applied.
func TestPipeline_ADeadLetterIsSettledBeforeTheNextBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		b.put("a", 50)
		b.onSettle = func(context.Context, *receiver, session.Message) error {
			time.Sleep(time.Second)
			return nil
		}
		h.apply = func(_ context.Context, _ string, messages []session.Message) ([]session.Verdict, error) {
			if from := messages[0].SequenceNumber; b.left() > 50-int(from-1) {
				b.mu.Lock()
				b.violation("message %d is applied before those in front of it are settled", from)
				b.mu.Unlock()
			}
			verdicts := make([]session.Verdict, len(messages))
			verdicts[3].DeadLetter = true
			return verdicts, nil
		}
		_, stop := runAt(t, one(), carrying{broker: b}, b, h)
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		_ = stop()
	})
}

// What is asked for ahead is part of the budget, and a heavier message elsewhere has
// less asked for.
func TestPipeline_IsWithinTheBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const budget, each = 40 << 20, 100 << 10
		b := heavy(8, 400, each-1<<10)
		h := newHandler(b)
		seen := &asking{each: each}
		cfg := session.Defaults()
		cfg.MaxSessions, cfg.AcceptFloor, cfg.MaxBytes = 8, 8, budget
		engine, stop := runAt(t, cfg, carrying{broker: b, seen: seen}, b, h)
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		_ = stop()
		if seen.asks == 0 || seen.bytes > budget || seen.bytes < budget/2 {
			t.Errorf("asked ahead %d times, with %d bytes at once, want up to %d and not far from it", seen.asks, seen.bytes, budget)
		}
		if left := engine.BytesInFlight(); left != 0 {
			t.Errorf("%d bytes are in flight after the end, want none", left)
		}
	})
}

// A session that has had its share is given back with nothing on its way.
func TestPipeline_NothingIsOnItsWayWhenTheSessionGoesBack(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]func(*session.Config){
		"by count": func(c *session.Config) { c.HoldMessages = 125 },
		"by time":  func(c *session.Config) { c.HoldTime = time.Second },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBroker()
				h := newHandler(b)
				b.put("a", 1000)
				h.apply = func(_ context.Context, _ string, messages []session.Message) ([]session.Verdict, error) {
					time.Sleep(30 * time.Millisecond)
					return make([]session.Verdict, len(messages)), nil
				}
				seen := &asking{}
				cfg := one()
				limit(&cfg)
				_, stop := runAt(t, cfg, carrying{broker: b, far: true, seen: seen}, b, h)
				until(t, "everything is settled", func() bool { return b.left() == 0 })
				_ = stop()
				if accepts, _, _ := b.counts(); accepts < 3 || accepts > 9 || seen.asks == 0 || seen.vain != 0 {
					t.Errorf("got %d accepts, asked ahead %d times, and %d in vain; want some, some, and none", accepts, seen.asks, seen.vain)
				}
			})
		})
	}
}

// A session that was left alone may be again, and what was asked for ahead in vain.
func TestPipeline_ASessionThatWasLeftAloneIsAskedForNothingAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		b.put("a", 100)
		seen := &asking{}
		h.apply = func(_ context.Context, _ string, messages []session.Message) ([]session.Verdict, error) {
			if messages[0].SequenceNumber > 20 {
				return nil, session.ErrRest
			}
			return make([]session.Verdict, len(messages)), nil
		}
		engine, stop := runAt(t, one(), carrying{broker: b, seen: seen}, b, h)
		asks := func() int {
			seen.mu.Lock()
			defer seen.mu.Unlock()
			return seen.asks
		}
		until(t, "the session rests", func() bool { return engine.Counts().Resting.Load() > 0 })
		first := asks()
		until(t, "it has been tried again", func() bool { accepts, _, _ := b.counts(); return accepts == 2 && h.calls() > 3 })
		if again := asks() - first; first == 0 || again != 0 {
			t.Errorf("asked ahead %d times at first and %d times after the rest, want some and none", first, again)
		}
		_ = stop()
	})
}

// A receive whose time is over while messages come is not short.
func TestPipeline_MessagesThatComeSlowlyFillTheirBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		b.put("a", 33)
		_, stop := runAt(t, one(), carrying{broker: b, slow: true}, b, h)
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		_ = stop()
		// Three at first, which nothing is known of, and then ten at a time.
		if accepts, _, _ := b.counts(); accepts != 1 || h.calls() > 5 {
			t.Errorf("got %d accepts and %d applies, want 1 and full batches", accepts, h.calls())
		}
	})
}
