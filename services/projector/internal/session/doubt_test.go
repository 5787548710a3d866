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

// Each step of a hold meets the end of its lock. The broker notes whatever is
// applied or settled without it.
func TestDoubt_NothingIsDoneAfterTheLock(t *testing.T) {
	t.Parallel()
	noRenewal := func(context.Context, *receiver) error { return errors.New("link detached") }
	tests := []struct {
		name  string
		setup func(b *broker, h *handler, paused *atomic.Bool)
	}{
		{"the process stands still between a receive and an apply", func(b *broker, _ *handler, paused *atomic.Bool) {
			b.onRenew = noRenewal
			b.deliver = func(m []session.Message) []session.Message {
				if paused.CompareAndSwap(false, true) {
					time.Sleep(31 * time.Second)
				}
				return m
			}
		}},
		{"the process stands still in an apply", func(b *broker, h *handler, paused *atomic.Bool) {
			b.onRenew = noRenewal
			h.apply = func(_ context.Context, _ string, m []session.Message) ([]session.Verdict, error) {
				if paused.CompareAndSwap(false, true) {
					time.Sleep(time.Minute)
				}
				return make([]session.Verdict, len(m)), nil
			}
		}},
		{"applying fails until the lock is over", func(b *broker, h *handler, paused *atomic.Bool) {
			b.onRenew = noRenewal
			h.apply = func(ctx context.Context, _ string, m []session.Message) ([]session.Verdict, error) {
				if paused.Load() {
					return make([]session.Verdict, len(m)), nil
				}
				if time.Sleep(5 * time.Second); ctx.Err() != nil {
					paused.Store(true)
				}
				return nil, errors.New("down")
			}
		}},
		{"settlements are slow", func(b *broker, _ *handler, _ *atomic.Bool) {
			b.onRenew = noRenewal
			b.onSettle = func(ctx context.Context, _ *receiver, m session.Message) error {
				if m.SequenceNumber > 2 {
					return nil
				}
				<-ctx.Done()
				return ctx.Err()
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBroker()
				h := newHandler(b)
				var paused atomic.Bool
				tt.setup(b, h, &paused)
				b.put("a", 6)
				cfg := small()
				cfg.MaxSessions, cfg.AcceptFloor = 1, 1 // a process that stands still does nothing else either
				cfg.MaxSettles = 1
				cfg.SettleTime = time.Hour // the lock alone bounds it here
				engine, stop := run(t, cfg, b, h)
				until(t, "the session is dropped", func() bool { return engine.Counts().GivenBack.Load() >= 1 })
				_ = stop()
			})
		})
	}
}

func TestDoubt_ALockIsRenewedWhileAnApplyTakesLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		h.apply = func(ctx context.Context, _ string, m []session.Message) ([]session.Verdict, error) {
			select {
			case <-time.After(5 * time.Minute):
				return make([]session.Verdict, len(m)), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		b.put("a", 3)
		engine, stop := run(t, small(), b, h)
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		_ = stop()
		if got := engine.Counts().GivenBack.Load(); got != 0 {
			t.Errorf("sessions given back: got %d, want 0", got)
		}
	})
}

func TestDoubt_AHungRenewalDoesNotKeepWorkGoingPastTheLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		b.onRenew = func(context.Context, *receiver) error { time.Sleep(10 * time.Minute); return nil }
		worked := make(chan time.Duration, 1)
		h.apply = func(ctx context.Context, _ string, m []session.Message) ([]session.Verdict, error) {
			began := time.Now()
			<-ctx.Done()
			worked <- time.Since(began)
			return nil, ctx.Err()
		}
		b.put("a", 1)
		cfg := small()
		cfg.MaxSessions, cfg.AcceptFloor = 1, 1
		_, stop := run(t, cfg, b, h)
		if got, most := <-worked, b.lockTime-cfg.LockMargin; got > most {
			t.Errorf("the apply was stopped after %s, want at most %s", got, most)
		}
		_ = stop()
	})
}

func TestDoubt_ASessionThatFailsAgainAndAgainIsNotTakenInAHotLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		b.put("a", 1)
		b.onSettle = func(context.Context, *receiver, session.Message) error { return errors.New("link detached") }
		cfg := small()
		_, stop := run(t, cfg, b, newHandler(b))
		time.Sleep(10 * time.Minute)
		_ = stop()
		accepts, _, _ := b.counts()
		if most := cfg.MaxSessions * (600/2 + 20); accepts < 10 || accepts > most {
			t.Errorf("accepts in ten minutes: got %d, want at most %d, and not none", accepts, most)
		}
	})
}

func TestDoubt_AFailedRenewalEndsTheHoldAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		b.onRenew = func(context.Context, *receiver) error { return errors.New("link detached") }
		var cancelled time.Duration
		h.apply = func(ctx context.Context, _ string, _ []session.Message) ([]session.Verdict, error) {
			began := time.Now()
			<-ctx.Done()
			cancelled = time.Since(began)
			return nil, ctx.Err()
		}
		b.put("a", 3)
		engine, stop := run(t, small(), b, h)
		until(t, "the lock counts as lost", func() bool { return engine.Counts().LocksLost.Load() >= 1 })
		_ = stop()
		if cancelled > 20*time.Second {
			t.Errorf("the apply was cancelled after %s, want at the failed renewal half way through the lock", cancelled)
		}
		if got := engine.Counts().Completed.Load(); got != 0 {
			t.Errorf("completed: got %d, want 0", got)
		}
	})
}

func TestDoubt_AFailedSettlementEndsTheHoldAndIsHarmless(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		b.put("a", 30)
		var failed atomic.Bool
		b.onSettle = func(_ context.Context, _ *receiver, m session.Message) error {
			if m.SequenceNumber == 5 && failed.CompareAndSwap(false, true) {
				return errors.New("link detached")
			}
			return nil
		}
		engine, stop := run(t, small(), b, h)
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		_ = stop()
		if got := engine.Counts().SettlesFailed.Load(); got < 1 {
			t.Errorf("failed settlements: got %d, want at least 1", got)
		}
		if accepts, _, _ := b.counts(); accepts < 2 {
			t.Errorf("accepts: got %d, want the receiver dropped and the session accepted again", accepts)
		}
	})
}

func TestDoubt_ASettlementHasItsOwnDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		b.put("a", 1)
		var took atomic.Int64
		b.onSettle = func(ctx context.Context, _ *receiver, _ session.Message) error {
			if took.Load() > 0 {
				return nil
			}
			began := time.Now()
			<-ctx.Done()
			took.Store(int64(time.Since(began)))
			return ctx.Err()
		}
		cfg := small()
		cfg.SettleTime = 2 * time.Second
		_, stop := run(t, cfg, b, newHandler(b))
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		_ = stop()
		if got := time.Duration(took.Load()); got != cfg.SettleTime {
			t.Errorf("a hung settlement lasted %s, want %s", got, cfg.SettleTime)
		}
	})
}

func TestDoubt_NoMoreSettlementsRunAtOnceThanAllowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		b.put("a", 10)
		var now, most atomic.Int64
		b.onSettle = func(context.Context, *receiver, session.Message) error {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Millisecond)
			now.Add(-1)
			return nil
		}
		cfg := small()
		cfg.MaxSettles = 4
		_, stop := run(t, cfg, b, newHandler(b))
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		_ = stop()
		if got := most.Load(); got != 4 {
			t.Errorf("settlements at once: got %d, want 4", got)
		}
	})
}

func TestDoubt_AReceiveThatFailsDropsTheReceiver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		b.put("a", 25)
		receives := 0
		b.onReceive = func(*receiver) error {
			if receives++; receives == 2 {
				return errors.New("link detached")
			}
			return nil
		}
		_, stop := run(t, small(), b, h)
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		_ = stop()
		if accepts, _, _ := b.counts(); accepts != 2 {
			t.Errorf("accepts: got %d, want 2: a receiver is not used again after an error", accepts)
		}
	})
}
