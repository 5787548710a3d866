package session_test

import (
	"compress/gzip"
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/projector/internal/session"
)

// heavy is a broker whose messages have bodies.
func heavy(sessions, messages, bytes int) *broker {
	b := newBroker()
	for s := range sessions {
		b.put("order-"+strconv.Itoa(s), messages)
	}
	body := make([]byte, bytes)
	b.deliver = func(messages []session.Message) []session.Message {
		for i := range messages {
			messages[i].Body = body
		}
		return messages
	}
	return b
}

// applied are the bytes that are applied at this moment, and the most there were.
type applied struct {
	mu        sync.Mutex
	now, most int
}

func (a *applied) add(bytes int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now += bytes
	a.most = max(a.most, a.now)
}

// through runs an engine with a budget until everything is applied, and returns
// the most bytes that were in hand at once.
func through(t *testing.T, b *broker, budget int64) int {
	t.Helper()
	h := newHandler(b)
	var in applied
	h.apply = func(_ context.Context, _ string, messages []session.Message) ([]session.Verdict, error) {
		bytes := 0
		for i := range messages {
			bytes += len(messages[i].Body)
		}
		in.add(bytes)
		defer in.add(-bytes)
		time.Sleep(100 * time.Millisecond) // so that others are at it besides
		return make([]session.Verdict, len(messages)), nil
	}
	cfg := session.Defaults()
	cfg.MaxSessions, cfg.MaxBytes = 32, budget
	engine, stop := run(t, cfg, b, h)
	until(t, "everything is applied", func() bool { return b.left() == 0 })
	if err := stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
	if left := engine.BytesInFlight(); left != 0 {
		t.Errorf("%d bytes are in flight after the end, want none", left)
	}
	for _, v := range b.violations {
		t.Error(v)
	}
	return in.most
}

// Messages no heavier than what is expected of unknown ones never take more than
// the budget, however many sessions there are.
func TestEngine_HoldsNoMoreBytesThanItMay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const budget = 20 << 20
		if most := through(t, heavy(32, 30, 780<<10), budget); most > budget || most < budget/2 {
			t.Errorf("%d bytes were in hand at once, want up to %d and not far from it", most, budget)
		}
	})
}

func TestEngine_AMessageBeyondTheBudgetGetsThroughAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const budget, message = 1 << 20, 5 << 20
		// What the first ones weigh is not known: those that come by then are more.
		if most := through(t, heavy(3, 8, message), budget); most != message {
			t.Errorf("%d bytes were in hand at once, want one message", most)
		}
	})
}

// bombs is a broker whose messages are light at first, so that many are asked for at
// once, and then unpack to 1 MiB each.
func bombs(t *testing.T, sessions, light, heavy int) *broker {
	t.Helper()
	b := newBroker()
	each := light + heavy
	for s := range sessions {
		b.put("order-"+strconv.Itoa(s), each)
	}
	bomb := packed(t, gzip.BestSpeed, make([]byte, 1<<20))
	b.deliver = func(messages []session.Message) []session.Message {
		for i := range messages {
			if int(messages[i].SequenceNumber-1)%each >= light {
				messages[i].Body, messages[i].ContentEncoding = bomb, "gzip"
			}
		}
		return messages
	}
	return b
}

// What is suddenly heavy is applied in parts, and those of all sessions together keep
// to the budget.
func TestEngine_MessagesThatAreSuddenlyHeavyAreNotUnpackedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const budget, sessions = 16 << 20, 32
		b := bombs(t, sessions, 200, 60)
		h := newHandler(b)
		var in applied
		h.apply = func(_ context.Context, _ string, messages []session.Message) ([]session.Verdict, error) {
			bytes := 0
			for i := range messages {
				bytes += int(messages[i].Weight())
			}
			in.add(bytes)
			defer in.add(-bytes)
			time.Sleep(100 * time.Millisecond)
			return make([]session.Verdict, len(messages)), nil
		}
		cfg := session.Defaults()
		cfg.MaxSessions, cfg.MaxBytes = sessions, budget
		engine, stop := run(t, cfg, b, h)
		until(t, "everything is applied", func() bool { return b.left() == 0 })
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if left := engine.BytesInFlight(); left != 0 {
			t.Errorf("%d bytes are in flight after the end, want none", left)
		}
		if in.most > budget || in.most < budget/2 {
			t.Errorf("%d bytes were applied at once, want up to %d and not far from it", in.most, budget)
		}
	})
}

// What waits to be applied, behind others or behind its own first part, is given back.
func TestEngine_ADrainEndsTheWaitToBeApplied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const sessions = 8
		b := bombs(t, sessions, 200, 60)
		h := newHandler(b)
		var heavy atomic.Int64
		h.apply = func(_ context.Context, _ string, messages []session.Message) ([]session.Verdict, error) {
			if messages[len(messages)-1].ContentEncoding != "" {
				heavy.Add(1)
				time.Sleep(time.Second)
			}
			return make([]session.Verdict, len(messages)), nil
		}
		cfg := session.Defaults()
		cfg.MaxSessions, cfg.AcceptFloor, cfg.MaxBytes = sessions, sessions, 4<<20
		_, stop := run(t, cfg, b, h)
		until(t, "some are applied", func() bool { return heavy.Load() > 4 })
		began := time.Now()
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
		// What was received as the drain began may still be tried once.
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the drain took %s, want what the first messages in hand need", took)
		}
	})
}

// One session with a lot to do leaves bytes for others.
func TestEngine_SessionsShareTheBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const budget, sessions = 16 << 20, 8
		b := heavy(sessions, 40, 1<<20-1<<10) // as heavy as unknown ones are taken to be
		h := newHandler(b)
		var together applied
		h.apply = func(_ context.Context, _ string, messages []session.Message) ([]session.Verdict, error) {
			together.add(1)
			defer together.add(-1)
			time.Sleep(time.Second)
			return make([]session.Verdict, len(messages)), nil
		}
		cfg := session.Defaults()
		cfg.MaxSessions, cfg.AcceptFloor, cfg.MaxBytes = sessions, sessions, budget
		_, stop := run(t, cfg, b, h)
		until(t, "everything is applied", func() bool { return b.left() == 0 })
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if together.most != sessions {
			t.Errorf("%d sessions were worked on at once, want all %d", together.most, sessions)
		}
	})
}

// A hold that waits for bytes ends with the drain.
func TestEngine_ADrainEndsTheWaitForBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := heavy(4, 5, 1<<20)
		h := newHandler(b)
		var applying atomic.Int64
		h.apply = func(_ context.Context, _ string, messages []session.Message) ([]session.Verdict, error) {
			applying.Add(1)
			time.Sleep(time.Second)
			return make([]session.Verdict, len(messages)), nil
		}
		cfg := session.Defaults()
		cfg.MaxSessions, cfg.AcceptFloor, cfg.MaxBytes = 4, 4, 1<<20
		_, stop := run(t, cfg, b, h)
		until(t, "one applies", func() bool { return applying.Load() > 0 })
		began := time.Now()
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the drain took %s, want what the batch in hand needs", took)
		}
	})
}
