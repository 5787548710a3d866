package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/session"
	"changerelay/services/projector/internal/watch"
)

// What was applied last may have waited for long, and the broker may have said before, beside
// it, that nothing else waits. Once it says so again, readers are up to date.
func TestLag_IsOverOnceTheBrokerSaysAgainThatNothingIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const age = 300 * time.Second
		metrics := watch.NewMetrics(watch.NewProgress(nil, nil))
		b := newBroker()
		b.put("a", 5)
		h := newHandler(b)
		cfg := small()
		h.apply = func(_ context.Context, _ string, messages []session.Message) ([]session.Verdict, error) {
			time.Sleep(2 * cfg.AcceptTime) // other accepts find nothing meanwhile
			changed := time.Now().Add(-age).Unix()
			metrics.Readable(&contract.Event{Position: contract.StreamPosition(uint32(changed), 1, "82")})
			return make([]session.Verdict, len(messages)), nil
		}
		engine, stop := run(t, cfg, b, h)
		until(t, "an old event is applied", func() bool { lag, known := metrics.CurrentLag(engine); return known && lag >= age })
		if none := engine.Counts().AcceptedNone.Load(); none == 0 {
			t.Fatal("no accept has found nothing beside the one that is applied")
		}
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		time.Sleep(2 * cfg.AcceptTime)
		if lag, known := metrics.CurrentLag(engine); !known || lag != 0 {
			t.Errorf("the lag while nothing is left: got %s, want 0", lag)
		}
		_ = stop()
	})
}
