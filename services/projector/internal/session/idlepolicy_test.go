package session_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/projector/internal/session"
)

// trickle puts a message into each of 50 sessions every 50 ms, for ten seconds,
// and returns how many sessions were accepted for how many messages.
func trickle(t *testing.T, keepTime time.Duration) (accepts, messages int) {
	t.Helper()
	b := newBroker()
	h := newHandler(b)
	cfg := session.Defaults()
	cfg.KeepTime = keepTime
	_, stop := run(t, cfg, b, h)
	for range 200 {
		for i := range 50 {
			b.put(fmt.Sprintf("order-%02d", i), 1)
		}
		time.Sleep(50 * time.Millisecond)
	}
	until(t, "everything is settled", func() bool { return b.left() == 0 })
	_ = stop()
	for i := range 50 {
		id := fmt.Sprintf("order-%02d", i)
		if got := h.seen(id); !slices.IsSorted(got) || len(got) != 200 {
			t.Errorf("session %s: applied %d messages, in order %t; want 200 in order", id, len(got), slices.IsSorted(got))
		}
	}
	accepts, _, _ = b.counts()
	return accepts, 50 * 200
}

func TestIdlePolicy_ASteadySessionIsKeptWhileNobodyWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		accepts, messages := trickle(t, time.Second)
		t.Logf("%d accepts for %d messages", accepts, messages)
		if accepts*20 > messages {
			t.Errorf("accepts: got %d for %d messages, want at most one for 20", accepts, messages)
		}
	})
}

func TestIdlePolicy_NoSessionIsKeptWithoutATimeForIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		if accepts, messages := trickle(t, 0); accepts != messages {
			t.Errorf("accepts: got %d for %d messages, want one for each", accepts, messages)
		}
	})
}

// steady makes a session steady and leaves it kept and empty.
func steady(t *testing.T, b *broker, id string) {
	t.Helper()
	for range 3 {
		b.put(id, 1)
		until(t, "the session is empty", func() bool { return b.left() == 0 })
		time.Sleep(10 * time.Millisecond)
	}
}

func TestIdlePolicy_KeptSessionsMakeRoomForOthersAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		cfg := small()
		cfg.KeepTime, cfg.HoldTime = time.Hour, time.Hour
		engine, stop := run(t, cfg, b, h)
		steady(t, b, "a")
		steady(t, b, "b")
		if held := engine.Counts().Held.Load(); held != 2 {
			t.Fatalf("sessions kept: got %d, want 2", held)
		}
		// As many sessions come as there are slots, and each takes a minute.
		var busy atomic.Int64
		h.apply = func(_ context.Context, _ string, m []session.Message) ([]session.Verdict, error) {
			busy.Add(1)
			time.Sleep(time.Minute)
			return make([]session.Verdict, len(m)), nil
		}
		for i := range cfg.MaxSessions {
			b.put(fmt.Sprintf("waiting-%d", i), 1)
		}
		time.Sleep(time.Second)
		if got := int(busy.Load()); got != cfg.MaxSessions {
			t.Errorf("sessions worked on: got %d, want all %d slots at work while sessions wait", got, cfg.MaxSessions)
		}
		_ = stop()
	})
}

func TestIdlePolicy_NothingIsKeptWhereNoAcceptWouldWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		cfg := small()
		cfg.MaxSessions, cfg.AcceptFloor = 2, 2
		engine, stop := run(t, cfg, b, newHandler(b))
		steady(t, b, "a")
		if held := engine.Counts().Held.Load(); held != 0 {
			t.Errorf("sessions held: got %d, want none", held)
		}
		_ = stop()
	})
}

func TestIdlePolicy_AKeptSessionIsGivenBackWhenNothingMoreComes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		cfg := small()
		engine, stop := run(t, cfg, b, newHandler(b))
		steady(t, b, "a")
		if held := engine.Counts().Held.Load(); held != 1 {
			t.Errorf("sessions held at once after a message: got %d, want 1", held)
		}
		time.Sleep(cfg.KeepTime)
		if held := engine.Counts().Held.Load(); held != 0 {
			t.Errorf("sessions held after the time to keep it: got %d, want none", held)
		}
		if err := stop(); err != nil {
			t.Errorf("Run: got %v, want nil", err)
		}
	})
}

func TestIdlePolicy_AKeptSessionThatFillsUpIsReadInBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		cfg := small()
		_, stop := run(t, cfg, b, h)
		steady(t, b, "a")
		before := h.calls()
		b.put("a", 10*cfg.BatchSize)
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		_ = stop()
		if calls := h.calls() - before; calls > 13 {
			t.Errorf("applied in %d calls, want about 10 batches", calls)
		}
	})
}

func TestIdlePolicy_AnIdleKeptSessionDoesNotHoldUpTheStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		cfg := small()
		cfg.KeepTime, cfg.HoldTime = time.Hour, time.Hour
		_, stop := run(t, cfg, b, newHandler(b))
		steady(t, b, "a")
		began := time.Now()
		if err := stop(); err != nil {
			t.Errorf("Run: got %v, want nil", err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the stop took %s, want it at once", took)
		}
	})
}

func TestIdlePolicy_ASessionThatFallsBehindIsReadInBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		// A receive takes longer than the time between two messages.
		b.onReceive = func(r *receiver) error {
			b.mu.Lock()
			given := r.given
			b.mu.Unlock()
			if given > 0 {
				time.Sleep(5 * time.Millisecond)
			}
			return nil
		}
		cfg := small()
		cfg.HoldTime = time.Minute
		_, stop := run(t, cfg, b, h)
		steady(t, b, "a")
		before := h.calls()
		for range 1000 {
			b.put("a", 1)
			time.Sleep(3 * time.Millisecond)
		}
		if left := b.left(); left > 20 {
			t.Errorf("messages not settled yet: got %d, want it to keep up", left)
		}
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		_ = stop()
		if calls := h.calls() - before; calls > 700 {
			t.Errorf("applied in %d calls, want fewer: messages that were there are read together", calls)
		}
	})
}
