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

// A paused engine takes no session, is no stall however long it lasts, and goes
// on by itself.
func TestPause_KeepsSessionsAwayUntilItIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		b.put("a", 5)
		var paused atomic.Bool
		paused.Store(true)
		cfg := small()
		cfg.Paused = paused.Load
		engine, stop := run(t, cfg, b, newHandler(b))
		time.Sleep(time.Hour)
		if accepts, _, _ := b.counts(); accepts != 0 || b.left() != 5 {
			t.Errorf("paused: got %d accepts and %d messages left, want none and all", accepts, b.left())
		}
		if err := engine.Stalled(); err != nil {
			t.Errorf("paused: got %v, want no stall", err)
		}
		paused.Store(false)
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		if hung := engine.Counts().AcceptsHung.Load(); hung != 0 {
			t.Errorf("afterwards: %d accepts count as hung, want none", hung)
		}
		paused.Store(true)
		if err := stop(); err != nil {
			t.Errorf("stop while paused: %v", err)
		}
	})
}

// The broker was not asked during the pause: that it has not answered is no sign.
func TestPause_IsNotTakenForTheBrokersSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		b.onAccept = func(ctx context.Context, _ int) error {
			<-ctx.Done() // its answer is late by a hair
			return ctx.Err()
		}
		var paused atomic.Bool
		cfg := small()
		cfg.Paused = paused.Load
		engine, stop := run(t, cfg, b, newHandler(b))
		time.Sleep(time.Second) // accepts are under way
		paused.Store(true)
		time.Sleep(time.Hour)
		paused.Store(false)
		time.Sleep(cfg.AcceptTime + 2*time.Second)
		if hung := engine.Counts().AcceptsHung.Load(); hung != 0 {
			t.Errorf("%d accepts count as hung, want none", hung)
		}
		_ = stop()
	})
}

// The broker is not asked during a pause, so nobody knows that there is nothing to do.
func TestPause_IsNoIdleness(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		var paused atomic.Bool
		cfg := small()
		cfg.Paused = paused.Load
		engine, stop := run(t, cfg, b, newHandler(b))
		until(t, "it is idle", func() bool { return !engine.Idle().IsZero() })
		paused.Store(true)
		time.Sleep(time.Minute)
		b.put("a", 1)
		if since := engine.Idle(); !since.IsZero() {
			t.Errorf("paused: idle since %s, want not idle", since)
		}
		paused.Store(false)
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		until(t, "it is idle again", func() bool { return !engine.Idle().IsZero() })
		_ = stop()
	})
}

func TestPause_ASessionThatIsHeldIsGivenBackAndNotTriedInPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		b.put("a", 1)
		h := newHandler(b)
		h.apply = func(context.Context, string, []session.Message) ([]session.Verdict, error) {
			return nil, errors.Join(errors.New("stopped"), session.ErrPaused)
		}
		cfg := small()
		cfg.Paused = func() bool { return h.calls() > 0 }
		engine, stop := run(t, cfg, b, h)
		time.Sleep(time.Hour)
		if got := h.calls(); got != 1 || engine.Counts().Held.Load() != 0 || b.left() != 1 {
			t.Errorf("got %d applies, %d held and %d left, want one apply and the session given back whole", got, engine.Counts().Held.Load(), b.left())
		}
		if engine.Applying().Current() != nil {
			t.Errorf("trouble: got %v, want none: the read database is not to blame", engine.Applying().Current())
		}
		_ = stop()
	})
}

// A session may come to an accept that began before the pause.
func TestPause_ASessionThatComesDuringItIsGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		b.put("a", 1)
		var paused atomic.Bool
		b.onAccept = func(context.Context, int) error {
			paused.Store(true)
			return nil
		}
		h := newHandler(b)
		cfg := small()
		cfg.Paused = paused.Load
		engine, stop := run(t, cfg, b, h)
		time.Sleep(time.Hour)
		// Another accept that was under way may have been given it in turn.
		if _, closes, _ := b.counts(); h.calls() != 0 || engine.Counts().Held.Load() != 0 || b.left() != 1 || closes == 0 || closes > cfg.MaxSessions {
			t.Errorf("got %d applies, %d held, %d left and %d closed, want the session given back whole", h.calls(), engine.Counts().Held.Load(), b.left(), closes)
		}
		_ = stop()
	})
}

// An accept that hung before a pause says nothing of those after it.
func TestPause_EndsThatAcceptsHang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		ends := make(chan struct{})
		b.onAccept = func(context.Context, int) error {
			<-ends // whatever its context says
			return errLost
		}
		var paused atomic.Bool
		cfg := small()
		cfg.Paused = paused.Load
		engine, stop := run(t, cfg, b, newHandler(b))
		time.Sleep(cfg.AcceptTime)
		paused.Store(true)
		time.Sleep(time.Hour)
		if hung := engine.Counts().AcceptsHung.Load(); hung == 0 {
			t.Fatal("no accept has hung")
		}
		if err := engine.Stalled(); err != nil {
			t.Errorf("paused: got %v, want no stall", err)
		}
		close(ends)
		_ = stop()
	})
}
