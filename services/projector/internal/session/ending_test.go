package session_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/projector/internal/session"
)

// short are sessions of one message each, in a broker that takes a second to settle one
// and notes how many are held at once at most.
func short(n int, settling time.Duration) (b *broker, most *int) {
	b = newBroker()
	for i := range n {
		b.put("order-"+strconv.Itoa(i), 1)
	}
	most = new(int)
	b.onSettle = func(ctx context.Context, _ *receiver, _ session.Message) error {
		b.mu.Lock()
		held := 0
		for _, q := range b.sessions {
			if q.holder != nil {
				held++
			}
		}
		*most = max(*most, held)
		b.mu.Unlock()
		select {
		case <-time.After(settling):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return b, most
}

func slowly(d time.Duration) func(context.Context, string, []session.Message) ([]session.Verdict, error) {
	return func(_ context.Context, _ string, messages []session.Message) ([]session.Verdict, error) {
		time.Sleep(d)
		return make([]session.Verdict, len(messages)), nil
	}
}

// The next session is taken while the last batch of the one before is settled, which no
// more than one session of a slot is at once.
func TestEnding_TheNextSessionIsTakenMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const sessions = 20
		b, most := short(sessions, time.Second)
		h := newHandler(b)
		h.apply = slowly(time.Second)
		began := time.Now()
		engine, stop := run(t, one(), b, h)
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		if took := time.Since(began); took > (sessions+2)*time.Second {
			t.Errorf("%d sessions took %s, want a second each", sessions, took)
		}
		_ = stop()
		if *most != 2 || engine.Counts().Held.Load() != 0 {
			t.Errorf("%d sessions were held at once, and %d at the end; want 2 and none", *most, engine.Counts().Held.Load())
		}
	})
}

func TestEnding_NoMoreThanOneOfASlotAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, most := short(20, 4*time.Second)
		_, stop := run(t, one(), b, newHandler(b))
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		_ = stop()
		if *most > 2 {
			t.Errorf("%d sessions were held at once by one slot, want 2 at most", *most)
		}
	})
}

// Where messages come slowly, more may come while a batch is settled, and are the same
// hold's.
func TestEnding_IsWaitedForWhereMessagesComeSlowly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, most := short(5, time.Second)
		b.onReceive = func(*receiver) error {
			time.Sleep(100 * time.Millisecond)
			return nil
		}
		_, stop := run(t, one(), b, newHandler(b))
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		_ = stop()
		if *most != 1 {
			t.Errorf("%d sessions were held at once, want one after the other", *most)
		}
	})
}

// A drain waits for what is settled behind a slot.
func TestEnding_IsPartOfTheDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := short(1, 3*time.Second)
		h := newHandler(b)
		_, stop := run(t, one(), b, h)
		until(t, "it is applied", func() bool { return len(h.seen("order-0")) == 1 })
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if accepts, closes, _ := b.counts(); b.left() != 0 || accepts != closes {
			t.Errorf("after the drain %d messages are left, and %d of %d sessions were given back; want none, and all", b.left(), closes, accepts)
		}
	})
}
