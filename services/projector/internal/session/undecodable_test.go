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

// undecoding is a broker with a message that receivers cannot decode, by its number; 0
// for none.
type undecoding struct {
	*broker
	number *atomic.Int64
	// loses: what comes with it is lost, as with the official client. vain counts that.
	loses bool
	vain  *atomic.Int64
	// after is how long a receive goes on that it ends.
	after time.Duration
}

// undecodingAt has that number be the message's.
func undecodingAt(b *broker, number int64) undecoding {
	u := undecoding{broker: b, number: &atomic.Int64{}, vain: &atomic.Int64{}}
	u.number.Store(number)
	return u
}

func (u undecoding) Accept(ctx context.Context, slot int) (session.Receiver, error) {
	r, err := u.broker.Accept(ctx, slot)
	if err != nil {
		return nil, err
	}
	return &ending{receiver: r.(*receiver), at: u}, nil
}

// ending is a receiver that ends with the message that cannot be decoded.
type ending struct {
	*receiver
	at    undecoding
	ended bool
}

func (e *ending) Receive(ctx context.Context, limit int) ([]session.Message, error) {
	messages, err := e.receiver.Receive(ctx, limit)
	for i, m := range messages {
		if m.SequenceNumber == e.at.number.Load() {
			e.ended = true
			time.Sleep(e.at.after)
			if e.at.loses {
				e.at.vain.Add(int64(i))
				i = 0
			}
			return messages[:i], fmt.Errorf("receive: %w", session.ErrUndecodable)
		}
	}
	return messages, err
}

func (e *ending) Settle(ctx context.Context, m session.Message, v session.Verdict) error {
	if e.ended {
		return fmt.Errorf("settle: %w", session.ErrUndecodable)
	}
	return e.receiver.Settle(ctx, m, v)
}

// What stands before a message that cannot be decoded is settled, its session is tried now
// and then, and goes on once the message is gone.
func TestUndecodable_KeepsItsPlaceAndHoldsUpNothingElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		b.put("a", 5)
		at := undecodingAt(b, 3)
		h := newHandler(b)
		cfg := small()
		engine, stop := runAt(t, cfg, at, b, h)
		time.Sleep(time.Minute)
		b.put("b", 2)
		time.Sleep(time.Minute)
		if a, b := h.seen("a"), h.seen("b"); !slices.Equal(a, []int64{1, 2}) || len(b) != 2 {
			t.Errorf("got %v and %v applied, want what stands before the message, and all of the other session", a, b)
		}
		if left := b.left(); left != 3 {
			t.Errorf("got %d messages that are not settled, want 3", left)
		}
		if ids, since := engine.Undecodable(); !slices.Equal(ids, []string{"a"}) || time.Since(since) < 100*time.Second {
			t.Errorf("got %v since %v, want the session, since it was found", ids, since)
		}
		if idle := engine.Idle(); !idle.IsZero() {
			t.Errorf("idle: got since %v, want no", idle)
		}
		before, _, _ := b.counts()
		time.Sleep(10 * time.Minute)
		if now, _, _ := b.counts(); now-before > 100 || now-before < 10 {
			t.Errorf("got %d accepts in ten minutes, want a few", now-before)
		}
		at.number.Store(0)
		until(t, "all is settled", func() bool { return b.left() == 0 })
		time.Sleep(time.Minute)
		if ids, _ := engine.Undecodable(); len(ids) != 0 {
			t.Errorf("got %v once all is settled, want none", ids)
		}
		_ = stop()
	})
}

// aSecondEach applies each message in a second.
func aSecondEach(_ context.Context, _ string, messages []session.Message) ([]session.Verdict, error) {
	time.Sleep(time.Duration(len(messages)) * time.Second)
	return make([]session.Verdict, len(messages)), nil
}

// A hold that has its share before it comes to the message has not shown where that is: the
// next one receives one by one as well, until it is the next, or as many have come as it was
// among.
func TestUndecodable_IsNotForgottenBeforeItWouldHaveCome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		b.put("a", 100)
		at := undecodingAt(b, 8)
		at.loses = true
		h := newHandler(b)
		h.apply = aSecondEach
		cfg := small()
		cfg.HoldTime = 2500 * time.Millisecond
		engine, stop := runAt(t, cfg, at, b, h)
		until(t, "what stands before it is settled", func() bool { return b.left() == 93 })
		if n := at.vain.Load(); n != 7 {
			t.Errorf("%d messages have come in vain, want the 7 with which it was found", n)
		}
		at.number.Store(0)
		until(t, "it is forgotten", func() bool { ids, _ := engine.Undecodable(); return len(ids) == 0 })
		if b.left() == 0 {
			t.Error("it is forgotten only when the session has run empty, want once what it was among has come")
		}
		_ = stop()
	})
}

// It is forgotten at once where it is gone before the session came to it.
func TestUndecodable_IsForgottenWhereTheSessionHasRunEmpty(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		b.put("a", 3)
		at := undecodingAt(b, 3)
		h := newHandler(b)
		h.apply = aSecondEach
		engine, stop := runAt(t, small(), at, b, h)
		until(t, "it is found", func() bool { ids, _ := engine.Undecodable(); return len(ids) == 1 })
		at.number.Store(0)
		until(t, "all is settled", func() bool { return b.left() == 0 })
		time.Sleep(10 * time.Second)
		if ids, _ := engine.Undecodable(); len(ids) != 0 {
			t.Errorf("got %v once all is settled, want none", ids)
		}
		_ = stop()
	})
}

// It is known as well where something else ends the receive or the hold at that moment.
func TestUndecodable_IsKnownWhateverElseEnds(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{
		"the time of the receive": small().FirstMessageTime + time.Second,
		"the lock":                time.Minute,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBroker()
				b.onRenew = func(context.Context, *receiver) error { return errLost }
				b.put("a", 1)
				at := undecodingAt(b, 1)
				at.after = after
				engine, stop := runAt(t, small(), at, b, newHandler(b))
				until(t, "it is known", func() bool { ids, _ := engine.Undecodable(); return len(ids) == 1 })
				_ = stop()
			})
		})
	}
}

// A session that does not come again is with another replica, or has nothing left.
func TestUndecodable_IsForgottenWhereItDoesNotComeAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		b.put("a", 1)
		at := undecodingAt(b, 1)
		engine, stop := runAt(t, small(), at, b, newHandler(b))
		until(t, "it is found", func() bool { ids, _ := engine.Undecodable(); return len(ids) == 1 })
		b.mu.Lock()
		b.sessions["a"].messages = nil
		b.mu.Unlock()
		time.Sleep(time.Hour)
		if ids, since := engine.Undecodable(); len(ids) != 0 || !since.IsZero() {
			t.Errorf("got %v since %v, want none", ids, since)
		}
		_ = stop()
	})
}
