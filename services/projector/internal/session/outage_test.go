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

// An outage is over where other replicas have done what failed: nothing comes that could
// succeed here. While there is something to do, it lasts as long as that fails.
func TestOutage_EndsWhereOthersHaveTakenTheSession(t *testing.T) {
	t.Parallel()
	failing := errors.New("no server")
	for _, tt := range []struct {
		name   string
		settle error
		apply  error
		of     func(*session.Engine) *session.Outage
	}{
		{"applies fail", nil, failing, (*session.Engine).Applying},
		{"settlements are throttled", throttled(time.Second), nil, (*session.Engine).Settling},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBroker()
				b.put("a", 5)
				b.onSettle = func(context.Context, *receiver, session.Message) error { return tt.settle }
				var taken atomic.Bool
				b.onClose = func() {
					if taken.Load() { // another replica settles all of it
						b.mu.Lock()
						b.sessions["a"] = &queue{}
						b.mu.Unlock()
					}
				}
				b.onRenew = func(context.Context, *receiver) error { return errLost }
				h := newHandler(b)
				h.apply = func(_ context.Context, _ string, messages []session.Message) ([]session.Verdict, error) {
					if tt.apply != nil {
						return nil, tt.apply
					}
					return make([]session.Verdict, len(messages)), nil
				}
				engine, stop := run(t, small(), b, h)
				fails := func() bool {
					engine.Answers()
					return tt.of(engine).Current() != nil
				}
				until(t, "it fails", fails)
				for range 600 {
					time.Sleep(time.Second)
					if !fails() {
						t.Fatal("it is over while its messages are left")
					}
				}
				taken.Store(true)
				until(t, "it is over", func() bool { return !fails() })
				_ = stop()
			})
		})
	}
}

// Near its limits the broker refuses some of what it is asked beside what it does. That is an
// outage, from the first refusal on, once it does nothing else for long.
func TestOutage_ThrottlingIsOneOnceNothingIsAnsweredBesideIt(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(*session.Engine) *session.Outage{
		"accepts":     (*session.Engine).Accepting,
		"settlements": (*session.Engine).Settling,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const pause = 2 * time.Second
				b := newBroker()
				var tries atomic.Int64
				var all atomic.Bool
				refuse := func() error {
					if tries.Add(1)%2 == 0 || all.Load() {
						return throttled(pause)
					}
					return nil
				}
				if name == "accepts" {
					b.onAccept = func(context.Context, int) error { return refuse() }
				} else {
					b.onSettle = func(context.Context, *receiver, session.Message) error { return refuse() }
				}
				cfg := small()
				cfg.KeepTime = 0 // each message takes an accept
				engine, stop := run(t, cfg, b, newHandler(b))
				for range 300 {
					b.put("a", 1)
					time.Sleep(time.Second)
					if err := of(engine).Current(); err != nil {
						t.Fatalf("every second one is refused: got %v, want no outage", err)
					}
				}
				all.Store(true)
				began := time.Now()
				b.put("a", 1)
				b.put("b", 1)
				time.Sleep(25 * time.Second)
				if err := of(engine).Current(); err != nil {
					t.Errorf("all were refused for less than half a minute: got %v, want no outage yet", err)
				}
				time.Sleep(25 * time.Second)
				if since := of(engine).Since(); since.Sub(began).Abs() > 2*pause {
					t.Errorf("all are refused: got an outage since %s after the first refusal, want about then", since.Sub(began))
				}
				_ = stop()
			})
		})
	}
}
