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
