package session_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"changerelay/services/projector/internal/session"
)

var nop = zerolog.Nop()

func TestDrain_DrainFinishesTheBatchSettlesItAndGivesTheSessionBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		var applying atomic.Int64
		h.apply = func(ctx context.Context, _ string, m []session.Message) ([]session.Verdict, error) {
			applying.Add(1)
			select {
			case <-time.After(3 * time.Second):
				return make([]session.Verdict, len(m)), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		for i := range 10 {
			b.put(fmt.Sprintf("order-%d", i), 100)
		}
		engine, stop := run(t, small(), b, h)
		until(t, "all slots apply", func() bool { return applying.Load() == 4 })
		time.Sleep(time.Second)
		began := time.Now()
		if err := stop(); err != nil {
			t.Errorf("Run: got %v, want nil", err)
		}
		if took := time.Since(began); took > 2100*time.Millisecond {
			t.Errorf("drained in %s, want the two seconds that the batches in hand needed", took)
		}
		if got := engine.Counts().Completed.Load(); got != 40 {
			t.Errorf("completed: got %d, want the 40 messages in hand", got)
		}
		if applying.Load() != 4 {
			t.Errorf("batches: got %d, want the 4 in hand and no other", applying.Load())
		}
		if accepts, closes, _ := b.counts(); accepts != 4 || closes != 4 {
			t.Errorf("accepted %d, given back %d; want 4 and 4", accepts, closes)
		}
	})
}

func TestDrain_DrainEndsInItsTime(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	tests := []struct {
		name  string
		setup func(b *broker, h *handler)
	}{
		{"although an apply hangs", func(_ *broker, h *handler) {
			h.apply = func(ctx context.Context, _ string, _ []session.Message) ([]session.Verdict, error) {
				return nil, hang(ctx)
			}
		}},
		{"although settlements hang", func(b *broker, _ *handler) {
			b.onSettle = func(ctx context.Context, _ *receiver, _ session.Message) error { return hang(ctx) }
		}},
		{"although applying fails", func(_ *broker, h *handler) {
			h.apply = func(context.Context, string, []session.Message) ([]session.Verdict, error) {
				return nil, errors.New("down")
			}
		}},
		{"although accepts wait", func(b *broker, _ *handler) {
			b.onAccept = func(ctx context.Context, _ int) error { return hang(ctx) }
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBroker()
				h := newHandler(b)
				tt.setup(b, h)
				for i := range 10 {
					b.put(fmt.Sprintf("order-%d", i), 100)
				}
				cfg := small()
				cfg.SettleTime = time.Hour
				cfg.AcceptTime = time.Hour
				_, stop := run(t, cfg, b, h)
				time.Sleep(time.Second)
				began := time.Now()
				if err := stop(); err != nil {
					t.Errorf("Run: got %v, want nil", err)
				}
				if took := time.Since(began); took > cfg.DrainTime {
					t.Errorf("drained in %s, want at most %s", took, cfg.DrainTime)
				}
				if accepts, closes, _ := b.counts(); accepts != closes {
					t.Errorf("accepted %d, given back %d; want all given back", accepts, closes)
				}
			})
		})
	}
}

func TestDrain_AnIdleEngineStopsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, stop := run(t, small(), newBroker(), newHandler(newBroker()))
		time.Sleep(time.Second)
		began := time.Now()
		if err := stop(); err != nil {
			t.Errorf("Run: got %v, want nil", err)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("stopped in %s, want at once", took)
		}
	})
}

func TestDrain_AnAcceptThatNeverEndsIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		release := make(chan struct{})
		b.onAccept = func(context.Context, int) error { <-release; return errors.New("closed") }
		_, stop := run(t, small(), b, newHandler(b))
		time.Sleep(time.Minute)
		if err := stop(); err == nil {
			t.Error("Run: got nil, want an error that accepts still hang")
		}
		close(release)
		synctest.Wait()
	})
}
