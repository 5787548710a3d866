package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/projector/internal/session"
)

// The lock that a settlement began under is renewed while its answer is on its way.
func TestSettle_MayTakeLongerThanTheLockHeldWhenItBegan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		b.lockTime = 5 * time.Second
		h := newHandler(b)
		b.put("a", 3)
		b.onSettle = func(ctx context.Context, _ *receiver, _ session.Message) error {
			select {
			case <-time.After(4500 * time.Millisecond):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		engine, stop := run(t, one(), b, h)
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		_ = stop()
		if accepts, _, _ := b.counts(); accepts != 1 || engine.Counts().GivenBack.Load() != 0 {
			t.Errorf("got %d accepts, %d given back; want one hold", accepts, engine.Counts().GivenBack.Load())
		}
	})
}
