package session_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/projector/internal/session"
)

// resting is a handler that leaves every session alone.
func resting(b *broker) *handler {
	h := newHandler(b)
	h.apply = func(context.Context, string, []session.Message) ([]session.Verdict, error) {
		return nil, session.ErrRest
	}
	return h
}

// What came to a session at rest would be in memory, and in nobody's budget.
func TestRest_NothingComesToASessionAtRest(t *testing.T) {
	t.Parallel()
	for name, messages := range map[string]int{"after a short receive": 3, "with messages asked for ahead": 100} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBroker()
				b.put("a", messages)
				engine, stop := runAt(t, one(), carrying{broker: b}, b, resting(b))
				until(t, "the session rests", func() bool { return engine.Counts().Resting.Load() == 1 })
				b.put("a", 5)
				if came, counted := b.sessions["a"].holder.onItsWay(), engine.BytesInFlight(); came != 0 || counted != 0 {
					t.Errorf("%d messages come to it, and %d bytes are counted, want none", came, counted)
				}
				if accepts, _, _ := b.counts(); accepts != 1 {
					t.Errorf("it rests after %d accepts, want 1", accepts)
				}
				_ = stop()
			})
		})
	}
}

// far is a broker whose sessions come a while after they were granted.
type far struct{ *broker }

func (f far) Accept(ctx context.Context, slot int) (session.Receiver, error) {
	r, err := f.broker.Accept(ctx, slot)
	if err == nil {
		time.Sleep(100 * time.Millisecond)
	}
	return r, err
}

// The broker keeps a session at rest from other accepts, and says to them that there is
// none. Its messages are not applied for that, at rest or on their way to be tried again.
func TestRest_IsNoIdleness(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		b.lockTime = 5 * time.Minute
		b.put("a", 1)
		time.Sleep(time.Second)
		b.put("a", 2)
		stored := b.sessions["a"].messages[1].EnqueuedAt
		h := newHandler(b)
		var good atomic.Bool
		h.apply = func(_ context.Context, _ string, messages []session.Message) ([]session.Verdict, error) {
			if good.Load() {
				return make([]session.Verdict, len(messages)), nil
			}
			return make([]session.Verdict, b.left()-2), session.ErrRest
		}
		engine, stop := runAt(t, small(), far{b}, b, h)
		until(t, "the session rests", func() bool { return engine.Counts().Resting.Load() == 1 })
		for range 60_000 {
			synctest.Wait()
			if since := engine.Idle(); !since.IsZero() {
				t.Fatalf("after %d attempts: idle since %s, want not idle", h.calls(), since)
			}
			if oldest, some := engine.Oldest(); engine.Counts().Resting.Load() == 1 && (!some || !oldest.Equal(stored) || engine.InHand() != 2) {
				t.Fatalf("at rest: got %d messages not settled, the oldest stored at %s, want the two that are not applied", engine.InHand(), oldest)
			}
			time.Sleep(10 * time.Millisecond)
		}
		good.Store(true)
		until(t, "it is idle", func() bool { return !engine.Idle().IsZero() })
		if _, some := engine.Oldest(); some || b.left() != 0 || engine.InHand() != 0 {
			t.Errorf("idle with %d messages left, and %d in hand", b.left(), engine.InHand())
		}
		_ = stop()
	})
}

// A session whose messages may still come is given back, and they with it.
func TestRest_IsNoneWhereMessagesMayStillCome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		b.put("a", 3)
		at := carrying{broker: b, onWithdraw: func() error { return errors.New("no answer") }}
		cfg := one()
		began := time.Now()
		engine, stop := runAt(t, cfg, at, b, resting(b))
		until(t, "it is given back", func() bool { _, closes, _ := b.counts(); return closes > 0 })
		if took := time.Since(began); took >= cfg.RestInitial || engine.Counts().Resting.Load() != 0 {
			t.Errorf("given back after %s, want at once", took)
		}
		_ = stop()
	})
}

// crowd is a broker with sessions a0, a1 and so on that are left alone again and again.
func crowd(sessions int, bytes int) *broker {
	b := heavy(0, 0, bytes)
	for n := range sessions {
		b.put("a"+strconv.Itoa(n), 1)
	}
	return b
}

// besides is a handler that leaves alone the sessions of a crowd, and says how many bytes
// of others are applied at once.
func besides(b *broker, each int) (*handler, *applied) {
	h, in := newHandler(b), &applied{}
	h.apply = func(_ context.Context, id string, messages []session.Message) ([]session.Verdict, error) {
		if id[0] == 'a' {
			return nil, session.ErrRest
		}
		in.add(each * len(messages))
		defer in.add(-each * len(messages))
		time.Sleep(time.Second)
		return make([]session.Verdict, len(messages)), nil
	}
	return h, in
}

// Sessions at rest take memory, for their links and for buffers as large as their heaviest
// messages: no more than half of what there is for messages.
func TestRest_TakesNoMoreThanHalfOfTheBudget(t *testing.T) {
	t.Parallel()
	const each, most = 1 << 20, 8
	for name, takes := range map[string]struct{ link, message int }{"by links": {each - 10, 10}, "by messages": {10, each - 10}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := crowd(3*most, takes.message)
				engine, stop := run(t, tight(2*most*each, int64(takes.link)), b, resting(b))
				resting := int64(0)
				for range 6_000 {
					resting = max(resting, engine.Counts().Resting.Load())
					time.Sleep(10 * time.Millisecond)
				}
				if resting != most {
					t.Errorf("%d sessions were at rest at once, want %d", resting, most)
				}
				_ = stop()
			})
		})
	}
}

// tight is a configuration with so many bytes, of which a session at rest takes some.
func tight(bytes, rest int64) session.Config {
	cfg := session.Defaults()
	cfg.MaxSessions, cfg.AcceptFloor, cfg.MaxBytes, cfg.RestBytes, cfg.Copies = 32, 32, bytes, rest, 1
	return cfg
}

// What sessions at rest take, others do not have.
func TestRest_LeavesOthersLessOfTheBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const each, most = 1 << 20, 8
		b := crowd(most, each-1<<10)
		h, in := besides(b, each)
		engine, stop := run(t, tight(2*most*each, 1<<10), b, h)
		until(t, "all rest for long", func() bool { return engine.Counts().Resting.Load() == most && h.calls() > 6*most })
		for n := range 16 {
			b.put("z"+strconv.Itoa(n), 1)
		}
		until(t, "the others are done", func() bool { return b.left() == most })
		if in.most > most*each+each || in.most < most*each/2 {
			t.Errorf("%d bytes of others were in hand at once, want about %d, which is what is left", in.most, most*each)
		}
		_ = stop()
	})
}

// A message that is more than what sessions at rest leave gets through all the same.
func TestRest_HoldsUpNoMessageHoweverLarge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most, large = 8, 20 << 20
		b := crowd(most, 0)
		b.deliver = func(messages []session.Message) []session.Message {
			for i := range messages {
				if messages[i].SequenceNumber > most {
					messages[i].Body = make([]byte, large)
				}
			}
			return messages
		}
		h, _ := besides(b, large)
		cfg := tight(2*most<<20, 1<<20)
		cfg.RestInitial = 20 * time.Second
		engine, stop := run(t, cfg, b, h)
		until(t, "all rest", func() bool { return engine.Counts().Resting.Load() == most })
		for _, id := range []string{"y", "z"} { // what the second one may weigh is known by the first
			b.put(id, 1)
			until(t, "it is done", func() bool { return b.left() == most })
		}
		if resting := engine.Counts().Resting.Load(); resting != most {
			t.Errorf("they were done while %d sessions rested, want all %d", resting, most)
		}
		_ = stop()
	})
}

// What was asked for counts for as long as it may come.
func TestEngine_WhatMayStillComeIsInTheBudget(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]func(*broker) *handler{"until the session is given back": newHandler, "until nothing comes to it at rest": resting} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBroker()
				b.put("a", 3) // of ten that are asked for
				counted := atomic.Int64{}
				counted.Store(-1)
				var engine atomic.Pointer[session.Engine]
				look := func() error {
					time.Sleep(time.Second)
					counted.CompareAndSwap(-1, engine.Load().BytesInFlight())
					return nil
				}
				b.onClose = func() { _ = look() }
				e, stop := runAt(t, one(), carrying{broker: b, onWithdraw: look}, b, handler(b))
				engine.Store(e)
				until(t, "it was looked", func() bool { return counted.Load() >= 0 })
				if counted.Load() == 0 {
					t.Error("nothing is counted while messages may still come")
				}
				_ = stop()
				if left := e.BytesInFlight(); left != 0 {
					t.Errorf("%d bytes are in flight after the end, want none", left)
				}
			})
		})
	}
}
