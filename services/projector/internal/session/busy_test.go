package session_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/projector/internal/session"
)

func throttled(pause time.Duration) error {
	return &session.BusyError{Pause: pause, Err: errors.New("the entity is being throttled")}
}

// A throttled settlement is waited out where it is: the session is not accepted,
// received and written once more while the broker asks for less.
func TestSettle_AThrottledOneIsWaitedOutWithoutEndingTheHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		b.put("a", 30)
		const lasts, pause = 3 * time.Minute, 10 * time.Second
		began := time.Now()
		var tries atomic.Int64
		b.onSettle = func(context.Context, *receiver, session.Message) error {
			if time.Since(began) < lasts {
				tries.Add(1)
				return throttled(pause)
			}
			return nil
		}
		cfg := small()
		cfg.HoldTime = time.Hour
		engine, stop := run(t, cfg, b, h)
		time.Sleep(lasts / 2)
		if engine.Settling().Current() == nil {
			t.Error("trouble while throttled: got none, want the broker's error")
		}
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		if engine.Settling().Current() != nil {
			t.Errorf("trouble afterwards: got %v, want none", engine.Settling().Current())
		}
		_ = stop()
		// Ten of a batch, each at most once in a pause.
		if got, most := tries.Load(), int64(10*(lasts/pause+1)); got == 0 || got > most {
			t.Errorf("settlements while throttled: got %d, want some, and at most %d", got, most)
		}
		if accepts, _, _ := b.counts(); accepts != 1 || h.calls() != 3 {
			t.Errorf("got %d accepts and %d applies, want 1 and 3: the hold goes on", accepts, h.calls())
		}
		if c := engine.Counts(); c.SettlesThrottled.Load() != tries.Load() || c.SettlesFailed.Load() != 0 || c.GivenBack.Load() != 0 {
			t.Errorf("throttled %d, failed %d, given back %d; want %d, 0, 0", c.SettlesThrottled.Load(), c.SettlesFailed.Load(), c.GivenBack.Load(), tries.Load())
		}
	})
}

func TestSettle_AThrottledOneHoldsUpNoStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		b.put("a", 5)
		b.onSettle = func(context.Context, *receiver, session.Message) error { return throttled(time.Hour) }
		cfg := small()
		engine, stop := run(t, cfg, b, newHandler(b))
		until(t, "a settlement is throttled", func() bool { return engine.Counts().SettlesThrottled.Load() > 0 })
		began := time.Now()
		if err := stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		if took := time.Since(began); took > cfg.DrainTime {
			t.Errorf("the stop took %s, want at most %s", took, cfg.DrainTime)
		}
		if b.left() != 5 {
			t.Errorf("left: got %d, want all of what was not settled", b.left())
		}
	})
}

// A renewal that is throttled says nothing against the lock.
func TestLock_AThrottledRenewalIsTriedAgainWhileTheLockHolds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		renewal func(n int64) error
		lost    bool
	}{
		{"once", func(n int64) error {
			if n == 1 {
				return throttled(2 * time.Second)
			}
			return nil
		}, false},
		{"to the lock's end", func(int64) error { return throttled(2 * time.Second) }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBroker()
				b.put("a", 5)
				h := newHandler(b)
				h.apply = func(ctx context.Context, _ string, messages []session.Message) ([]session.Verdict, error) {
					select {
					case <-time.After(2 * b.lockTime):
						return make([]session.Verdict, len(messages)), nil
					case <-ctx.Done():
						return nil, context.Cause(ctx)
					}
				}
				var renewals atomic.Int64
				b.onRenew = func(context.Context, *receiver) error { return tt.renewal(renewals.Add(1)) }
				engine, stop := run(t, small(), b, h)
				until(t, "the first hold has ended", func() bool {
					return engine.Counts().Completed.Load() == 5 || engine.Counts().LocksLost.Load() > 0
				})
				if lost := engine.Counts().LocksLost.Load() > 0; lost != tt.lost {
					t.Errorf("lock lost: got %t, want %t", lost, tt.lost)
				}
				if got := renewals.Load(); tt.lost && got < 2 {
					t.Errorf("renewals: got %d, want another while the lock held", got)
				}
				_ = stop()
			})
		})
	}
}

// However many slots there are, a subscription that refuses is asked as by one.
func TestAccept_ASubscriptionThatRefusesIsAskedAboutOnceASecond(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		err  error
		most int64 // within ten minutes
	}{
		{"refused", errors.New("not found"), 200},
		{"throttled for long", throttled(30 * time.Second), 64 + 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBroker()
				b.put("a", 5)
				var tries atomic.Int64
				var mended atomic.Bool
				b.onAccept = func(context.Context, int) error {
					tries.Add(1)
					if mended.Load() {
						return nil
					}
					return tt.err
				}
				cfg := session.Defaults()
				cfg.MaxBytes = 1 << 40
				_, stop := run(t, cfg, b, newHandler(b))
				time.Sleep(10 * time.Minute)
				if got := tries.Load(); got < 5 || got > tt.most {
					t.Errorf("accepts in ten minutes: got %d, want up to %d", got, tt.most)
				}
				mended.Store(true)
				began := time.Now()
				until(t, "everything is settled", func() bool { return b.left() == 0 })
				if took := time.Since(began); took > 45*time.Second {
					t.Errorf("recovered after %s", took)
				}
				_ = stop()
			})
		})
	}
}

// Sessions that alone cannot be applied take no slot from the others, though the
// broker offers them first every time, and many more of them than there are slots.
func TestRest_SessionsThatFailAloneStarveNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		cfg := small()
		for _, id := range []string{"a1", "a2", "a3", "a4"} {
			b.put(id, 3)
		}
		b.put("z", 300)
		h.apply = func(_ context.Context, id string, messages []session.Message) ([]session.Verdict, error) {
			if id[0] == 'a' {
				return nil, session.ErrRest
			}
			return make([]session.Verdict, len(messages)), nil
		}
		engine, stop := run(t, cfg, b, h)
		began := time.Now()
		until(t, "the other session is done", func() bool { return b.left() == 4*3 })
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("the other session took %s, want it served beside those that fail", took)
		}
		before := h.calls()
		time.Sleep(10 * time.Minute)
		// Each rests 26 seconds of a lock of 30 in the end.
		if got, most := h.calls()-before, 4*(600/15); got < 4 || got > most {
			t.Errorf("applies in ten minutes: got %d, want some, and at most %d", got, most)
		}
		began = time.Now()
		if err := stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the stop took %s with sessions at rest, want at once", took)
		}
		if engine.Counts().Resting.Load() != 0 {
			t.Errorf("resting after the stop: got %d", engine.Counts().Resting.Load())
		}
	})
}

// A session that is applied again has its next rest short.
func TestRest_GrowsAndBeginsAnewAfterASuccess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		b.lockTime = 5 * time.Minute
		h := newHandler(b)
		var mu sync.Mutex
		var at []time.Time // guarded by mu
		var good atomic.Bool
		h.apply = func(_ context.Context, _ string, messages []session.Message) ([]session.Verdict, error) {
			mu.Lock()
			at = append(at, time.Now())
			mu.Unlock()
			if good.Load() {
				return make([]session.Verdict, len(messages)), nil
			}
			return nil, session.ErrRest
		}
		b.put("a", 1)
		_, stop := run(t, small(), b, h)
		gaps := func(n int) (seconds []int) {
			mu.Lock()
			at = nil
			mu.Unlock()
			until(t, "it has failed some times", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(at) >= n
			})
			mu.Lock()
			defer mu.Unlock()
			for i := range n - 1 {
				seconds = append(seconds, int(at[i+1].Sub(at[i]).Seconds()))
			}
			return seconds
		}
		first := gaps(7)
		if first[0] != 1 || first[1] != 2 || first[2] != 4 || first[5] != 30 {
			t.Errorf("rests: got %v, want 1, 2, 4 and so on, up to 30 seconds", first)
		}
		good.Store(true)
		until(t, "it is applied", func() bool { return b.left() == 0 })
		good.Store(false)
		b.put("a", 1)
		if again := gaps(3); again[0] != 1 {
			t.Errorf("rests after a success: got %v, want 1 second first", again)
		}
		_ = stop()
	})
}
