package session_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/projector/internal/session"
)

func TestAccept_AcceptsThatFailBackOffAndRecover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		b.put("a", 5)
		began := time.Now()
		var tries atomic.Int64
		b.onAccept = func(context.Context, int) error {
			tries.Add(1)
			if time.Since(began) < 10*time.Minute {
				return errors.New("connection refused")
			}
			return nil
		}
		cfg := small()
		engine, stop := run(t, cfg, b, newHandler(b))
		time.Sleep(5 * time.Minute)
		if engine.Accepting().Current() == nil {
			t.Error("trouble during the outage: got none, want the accept's error")
		}
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		if engine.Accepting().Current() != nil {
			t.Errorf("trouble after the outage: got %v, want none", engine.Accepting().Current())
		}
		_ = stop()
		if got, most := tries.Load(), int64(4*(600/2+20)); got > most {
			t.Errorf("accepts during ten minutes of outage: got %d, want at most %d", got, most)
		}
	})
}

func TestAccept_NoSessionIsNoTroubleAndNoBusyLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		var tries atomic.Int64
		b.onAccept = func(context.Context, int) error { tries.Add(1); return nil }
		cfg := small()
		engine, stop := run(t, cfg, b, newHandler(b))
		time.Sleep(10 * time.Minute)
		if err := engine.Accepting().Current(); err != nil {
			t.Errorf("trouble while idle: got %v, want none", err)
		}
		if engine.Idle().IsZero() {
			t.Error("the engine does not say that it is idle")
		}
		if err := engine.Stalled(); err != nil {
			t.Errorf("an idle engine counts as stalled: %v", err)
		}
		_ = stop()
		if got := tries.Load(); got > 150 {
			t.Errorf("accepts in ten idle minutes: got %d, want about %d: the floor's worth", got, 2*60)
		}
	})
}

func TestAccept_AcceptsGrowWithTheBacklog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		var now, most atomic.Int64
		h.apply = func(_ context.Context, _ string, m []session.Message) ([]session.Verdict, error) {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(50 * time.Millisecond)
			now.Add(-1)
			return make([]session.Verdict, len(m)), nil
		}
		for i := range 200 {
			b.put(fmt.Sprintf("order-%03d", i), 3)
		}
		cfg := small()
		cfg.MaxSessions = 32
		_, stop := run(t, cfg, b, h)
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		_ = stop()
		if got := most.Load(); got != 32 {
			t.Errorf("sessions at once: got %d, want 32", got)
		}
	})
}

func TestAccept_AHungAcceptIsGivenUpAndItsLateSessionGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		var hung atomic.Bool
		b.onAccept = func(_ context.Context, slot int) error {
			if slot == 0 && hung.CompareAndSwap(false, true) {
				time.Sleep(5 * time.Minute) // whatever its context says
			}
			return nil
		}
		cfg := small()
		cfg.MaxSessions, cfg.AcceptFloor = 1, 1
		engine, stop := run(t, cfg, b, h)
		time.Sleep(cfg.AcceptTime + cfg.AcceptGrace + time.Second)
		if _, _, doubts := b.counts(); len(doubts) != 1 || doubts[0] != 0 {
			t.Errorf("doubts: got %v, want slot 0 once", doubts)
		}
		b.put("a", 3)
		until(t, "the slot works on", func() bool { return b.left() == 0 })
		// The hung accept comes back with a session in hand.
		b.put("late", 1)
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		time.Sleep(5 * time.Minute)
		_ = stop()
		accepts, closes, _ := b.counts()
		if accepts != closes {
			t.Errorf("sessions accepted %d, given back %d; want all of them given back", accepts, closes)
		}
		if got := engine.Counts().AcceptsHung.Load(); got != 1 {
			t.Errorf("hung accepts: got %d, want 1", got)
		}
	})
}

func TestAccept_AcceptsThatHangForEverAreAStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		release := make(chan struct{})
		b.onAccept = func(context.Context, int) error { <-release; return errors.New("closed") }
		engine, stop := run(t, small(), b, newHandler(b))
		time.Sleep(30 * time.Second)
		if err := engine.Stalled(); err != nil {
			t.Errorf("after the first hung accepts: got %v, want nil", err)
		}
		time.Sleep(time.Minute)
		if err := engine.Stalled(); err == nil {
			t.Error("after all accepts have hung for a minute: got nil, want a stall")
		}
		close(release)
		time.Sleep(time.Minute)
		if err := engine.Stalled(); err != nil {
			t.Errorf("after accepts fail as they should: got %v, want nil", err)
		}
		_ = stop()
	})
}

func TestAccept_ALateSessionIsGivenBackUntouched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		b.put("a", 3)
		var first atomic.Bool
		late := &lateAcceptor{broker: b, first: &first, delay: time.Minute}
		cfg := small()
		cfg.MaxSessions, cfg.AcceptFloor = 1, 1
		engine := session.New(cfg, late, h, nop)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- engine.Run(ctx) }()
		until(t, "the late session is given back", func() bool { return engine.Counts().AcceptedLate.Load() == 1 })
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: got %v, want nil", err)
		}
		if accepts, closes, _ := b.counts(); accepts != closes {
			t.Errorf("sessions accepted %d, given back %d; want all of them given back", accepts, closes)
		}
	})
}

func TestAccept_ABrokerThatAnswersNothingIsTrouble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		b.onAccept = func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }
		began := time.Now()
		engine, stop := run(t, small(), b, newHandler(b))
		time.Sleep(31 * time.Second)
		if engine.Accepting().Current() == nil {
			t.Error("trouble: got none, want that the broker answers nothing")
		}
		if since := engine.Accepting().Since(); !since.Equal(began) {
			t.Errorf("trouble since %s, want from the first accept on, %s", since, began)
		}
		if none := engine.Counts().AcceptedNone.Load(); none != 0 {
			t.Errorf("%d accepts count as told that nothing is left, want none", none)
		}
		if since := engine.Idle(); !since.IsZero() {
			t.Errorf("idle: got since %v, want no: the broker does not say so", since)
		}
		if _, _, doubts := b.counts(); len(doubts) == 0 {
			t.Error("the connection was not doubted")
		}
		_ = stop()
	})
}

// A broker that falls silent is away since the first accept after its last answer, not since
// that is noticed. It was not asked while all slots were at work, so that is no silence.
func TestAccept_ASilenceLastsSinceTheLastAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		b.put("a", 1)
		var silent atomic.Bool
		b.onAccept = func(ctx context.Context, _ int) error {
			if silent.Load() {
				<-ctx.Done()
			}
			return ctx.Err()
		}
		const works = 5 * time.Minute
		h := newHandler(b)
		h.apply = func(_ context.Context, _ string, messages []session.Message) ([]session.Verdict, error) {
			silent.Store(true)
			time.Sleep(works)
			return make([]session.Verdict, len(messages)), nil
		}
		cfg := small()
		cfg.MaxSessions, cfg.AcceptFloor = 1, 1
		began := time.Now()
		engine, stop := run(t, cfg, b, h)
		time.Sleep(works + cfg.AcceptTime + time.Second)
		if err := engine.Accepting().Current(); err != nil {
			t.Errorf("an accept after five minutes of work: got %v, want no trouble yet", err)
		}
		time.Sleep(2 * cfg.AcceptTime)
		if since := engine.Accepting().Since(); since.Sub(began).Round(time.Second) != works {
			t.Errorf("trouble since %s after the start, want since the first accept without an answer, %s", since.Sub(began), works)
		}
		_ = stop()
	})
}

// lateAcceptor lets the first accept return its session long after its time.
type lateAcceptor struct {
	*broker
	first *atomic.Bool
	delay time.Duration
}

func (a *lateAcceptor) Accept(ctx context.Context, slot int) (session.Receiver, error) {
	r, err := a.broker.Accept(ctx, slot)
	if a.first.CompareAndSwap(false, true) {
		time.Sleep(a.delay)
	}
	return r, err
}
