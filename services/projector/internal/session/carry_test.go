package session_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"changerelay/services/projector/internal/session"
)

// carrying is a broker whose receivers keep what comes after a receive.
type carrying struct {
	*broker
	// busy tells that the connection carries what is for others.
	busy bool
	// late is how long after its grant a session's messages come, and coming tells that
	// meanwhile something comes on the connection.
	late   time.Duration
	coming bool
	// slow has a receive bring three messages at most, and all but the first one only
	// when its time is over.
	slow bool
	// far has what was asked for come only while it is received.
	far bool
	// onWithdraw, unless nil, is called by Withdraw, and decides.
	onWithdraw func() error
	seen       *asking
}

// asking is what was asked for ahead.
type asking struct {
	mu    sync.Mutex
	asks  int
	vain  int // messages on their way to a session when it was given back
	bytes int // that were asked for or not settled at once, at most, with each this heavy
	each  int
}

func (c carrying) Accept(ctx context.Context, slot int) (session.Receiver, error) {
	r, err := c.broker.Accept(ctx, slot)
	if err != nil {
		return nil, err
	}
	return &carrier{r.(*receiver), c, time.Now()}, nil
}

type carrier struct {
	*receiver
	at      carrying
	granted time.Time
}

func (c *carrier) Carried() int {
	if c.at.far {
		return 0
	}
	return c.onItsWay()
}

// onItsWay is how many messages come for the credit that is left on the link.
func (r *receiver) onItsWay() int {
	r.broker.mu.Lock()
	defer r.broker.mu.Unlock()
	return min(len(r.queue.messages)-(r.given-r.settled), r.credit)
}

func (c *carrier) Withdraw(context.Context) error {
	if c.at.onWithdraw != nil {
		if err := c.at.onWithdraw(); err != nil {
			return err
		}
	}
	c.broker.mu.Lock()
	defer c.broker.mu.Unlock()
	c.credit = 0
	return nil
}

func (c *carrier) Turn(_ context.Context, limit int, _ int64) (int, error) { return limit, nil }

func (c *carrier) Busy() bool { return c.at.busy }

func (c *carrier) Coming() bool { return c.at.coming }

func (c *carrier) Ask(n int) error {
	c.broker.mu.Lock()
	defer c.broker.mu.Unlock()
	c.credit = max(c.credit, n)
	c.at.seen.asked(c.broker)
	return nil
}

// asked is called with the broker's mu held.
func (a *asking) asked(b *broker) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asks++
	messages := 0
	for _, q := range b.sessions {
		if q.holder != nil {
			messages += q.holder.credit + q.holder.given - q.holder.settled
		}
	}
	a.bytes = max(a.bytes, messages*a.each)
}

func (c *carrier) Close(ctx context.Context) error {
	if c.at.seen != nil {
		c.at.seen.mu.Lock()
		c.at.seen.vain += c.onItsWay()
		c.at.seen.mu.Unlock()
	}
	return c.receiver.Close(ctx)
}

func (c *carrier) Receive(ctx context.Context, limit int) ([]session.Message, error) {
	c.broker.mu.Lock()
	owed, first, most := c.credit, c.given == 0, limit
	c.credit = 0
	c.broker.mu.Unlock()
	if c.at.slow {
		most = min(limit, 3)
	}
	if c.at.slow && !first {
		<-ctx.Done()
	}
	if wait := time.Until(c.granted.Add(c.at.late)); wait > 0 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			most = 0
		}
	}
	messages, err := c.receiver.Receive(ctx, most)
	c.broker.mu.Lock()
	defer c.broker.mu.Unlock()
	c.credit = max(owed, limit) - len(messages)
	return messages, err
}

// What comes while a batch is applied is applied in the same hold, and the hold
// ends as soon as nothing has come.
func TestHold_GoesOnWithWhatWasCarried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		h := newHandler(b)
		b.put("a", 2)
		more := 3
		h.apply = func(_ context.Context, _ string, messages []session.Message) ([]session.Verdict, error) {
			if more > 0 {
				more--
				b.put("a", 4)
			}
			return make([]session.Verdict, len(messages)), nil
		}
		cfg := session.Defaults()
		cfg.MaxSessions, cfg.AcceptFloor = 1, 1
		e := session.New(cfg, carrying{broker: b}, h, zerolog.Nop())
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- e.Run(ctx) }()
		time.Sleep(time.Second)
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		if accepts, closes, _ := b.counts(); accepts != 1 || closes != 1 {
			t.Errorf("got %d accepts and %d closes, want one hold", accepts, closes)
		}
		if got := h.applied["a"]; len(got) != 14 || !slices.IsSorted(got) {
			t.Errorf("got %v applied, want 14 in order", got)
		}
		for _, v := range b.violations {
			t.Error(v)
		}
	})
}

// A session whose messages stand behind those of others on the connection has not
// run empty.
func TestHold_WaitsWhileTheConnectionIsBusy(t *testing.T) {
	t.Parallel()
	for busy, want := range map[bool]int{true: 1, false: 2} {
		synctest.Test(t, func(t *testing.T) {
			b := newBroker()
			h := newHandler(b)
			b.put("a", 10)
			cfg := small()
			cfg.MaxSessions, cfg.AcceptFloor, cfg.KeepTime = 1, 1, 0
			e := session.New(cfg, carrying{broker: b, busy: busy}, h, zerolog.Nop())
			ctx, stop := context.WithCancel(t.Context())
			ran := make(chan error, 1)
			go func() { ran <- e.Run(ctx) }()
			time.Sleep(time.Second) // the first ten are applied, and the next are on their way
			b.put("a", 5)
			time.Sleep(10 * time.Second)
			stop()
			if err := <-ran; err != nil {
				t.Error(err)
			}
			if accepts, _, _ := b.counts(); accepts != want || len(h.applied["a"]) != 15 {
				t.Errorf("busy %v: got %d accepts and %d applied, want %d and 15", busy, accepts, len(h.applied["a"]), want)
			}
		})
	}
}

// A first message that takes long to come, on a connection on which something comes, is
// waited for, and where nothing comes that is said.
func TestHold_WaitsForAFirstMessageThatTakesLong(t *testing.T) {
	t.Parallel()
	for coming, want := range map[bool]int{true: 1, false: 0} {
		synctest.Test(t, func(t *testing.T) {
			b := newBroker()
			h := newHandler(b)
			b.put("a", 1)
			cfg := small()
			at := carrying{broker: b, late: 4 * cfg.FirstMessageTime, coming: coming}
			engine, stop := runAt(t, cfg, at, b, h)
			time.Sleep(time.Minute)
			_ = stop()
			if got := len(h.seen("a")); got != want {
				t.Errorf("coming %v: got %d applied, want %d", coming, got, want)
			}
			if got := engine.Counts().HeldNothing.Load(); (got == 0) != coming {
				t.Errorf("coming %v: got %d sessions without a message", coming, got)
			}
		})
	}
}

// A session of which nothing comes does not keep its slot for ever, whatever comes of
// others.
func TestHold_DoesNotWaitForAFirstMessageForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		b.put("a", 1)
		engine, stop := runAt(t, small(), carrying{broker: b, late: 24 * time.Hour, coming: true}, b, newHandler(b))
		time.Sleep(10 * b.lockTime)
		if got := engine.Counts().HeldNothing.Load(); got < 5 {
			t.Errorf("got %d holds without a message that ended, want one for each time of the lock", got)
		}
		_ = stop()
	})
}

// Sessions of which nothing comes, one after another, are no idleness until a message
// comes, however often the broker says meanwhile that there is no other session. One of
// them alone is nothing.
func TestHold_TellsSinceWhenSessionsBringNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		b.put("a", 1)
		began := time.Now()
		engine, stop := runAt(t, small(), lateUntil{carrying{broker: b, late: time.Hour}, began.Add(11 * time.Minute)}, b, newHandler(b))
		until(t, "one hold brings nothing", func() bool { return engine.Counts().HeldNothing.Load() == 1 })
		if since := engine.EmptyHanded(); !since.IsZero() {
			t.Errorf("after one hold: empty-handed since %s, want not", since)
		}
		time.Sleep(10 * time.Minute)
		if since := engine.EmptyHanded(); since.IsZero() || since.Sub(began) > time.Minute {
			t.Errorf("after ten minutes of them: empty-handed since %s, want since the first minute after %s", since, began)
		}
		until(t, "the message comes", func() bool { return b.left() == 0 })
		if since := engine.EmptyHanded(); !since.IsZero() {
			t.Errorf("after a message: empty-handed since %s, want not", since)
		}
		_ = stop()
	})
}

// lateUntil has messages come late until then.
type lateUntil struct {
	carrying
	then time.Time
}

func (l lateUntil) Accept(ctx context.Context, slot int) (session.Receiver, error) {
	if time.Now().After(l.then) {
		l.late = 0
	}
	return l.carrying.Accept(ctx, slot)
}
