package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"changerelay/services/projector/internal/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errLost = errors.New("fake: the session lock is lost")

// broker is a broker in memory: sessions with locks that run out, and receivers
// with credit that stays behind after a short receive. It notes what no
// consumer may do.
type broker struct {
	lockTime time.Duration

	// Hooks, set before the engine runs; nil does nothing.
	onAccept  func(ctx context.Context, slot int) error
	onReceive func(r *receiver) error
	deliver   func(messages []session.Message) []session.Message
	onRenew   func(ctx context.Context, r *receiver) error
	onSettle  func(ctx context.Context, r *receiver, m session.Message) error
	onClose   func()

	mu         sync.Mutex
	sessions   map[string]*queue
	next       int64
	changed    chan struct{}
	accepts    int
	doubts     []int
	closes     int
	violations []string
	completed  map[string][]int64 // broker's numbers in the order of completion
	dead       map[int64]session.Verdict
}

type queue struct {
	messages []session.Message // not settled, in order
	holder   *receiver
}

func newBroker() *broker {
	return &broker{
		lockTime:  30 * time.Second,
		sessions:  map[string]*queue{},
		changed:   make(chan struct{}),
		completed: map[string][]int64{},
		dead:      map[int64]session.Verdict{},
	}
}

// put adds n messages to a session.
func (b *broker) put(id string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.sessions[id]
	if q == nil {
		q = &queue{}
		b.sessions[id] = q
	}
	for range n {
		b.next++
		q.messages = append(q.messages, session.Message{SequenceNumber: b.next, EnqueuedAt: time.Now()})
	}
	b.wake()
}

// wake is called with mu held.
func (b *broker) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *broker) violation(format string, args ...any) {
	b.violations = append(b.violations, fmt.Sprintf(format, args...))
}

// left is how many messages are not settled.
func (b *broker) left() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, q := range b.sessions {
		n += len(q.messages)
	}
	return n
}

func (b *broker) counts() (accepts, closes int, doubts []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.accepts, b.closes, slices.Clone(b.doubts)
}

// Accept answers shortly before ctx's deadline, as the service does.
func (b *broker) Accept(ctx context.Context, slot int) (session.Receiver, error) {
	if b.onAccept != nil {
		if err := b.onAccept(ctx, slot); err != nil {
			return nil, err
		}
	}
	deadline, _ := ctx.Deadline()
	answer := time.NewTimer(time.Until(deadline) - 50*time.Millisecond)
	defer answer.Stop()
	for {
		b.mu.Lock()
		changed := b.changed
		r := b.grant()
		b.mu.Unlock()
		if r != nil {
			return r, nil
		}
		select {
		case <-changed:
		case <-answer.C:
			return nil, session.ErrNoSession
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// grant locks a free session with messages. Called with mu held.
func (b *broker) grant() *receiver {
	ids := make([]string, 0, len(b.sessions))
	for id := range b.sessions {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		q := b.sessions[id]
		if q.holder != nil && time.Now().After(q.holder.until) {
			q.holder = nil
		}
		if q.holder == nil && len(q.messages) > 0 {
			b.accepts++
			q.holder = &receiver{broker: b, id: id, queue: q, until: time.Now().Add(b.lockTime)}
			return q.holder
		}
	}
	return nil
}

func (b *broker) Doubt(slot int, _ time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.doubts = append(b.doubts, slot)
}

type receiver struct {
	broker *broker
	id     string
	queue  *queue

	// guarded by broker.mu
	until   time.Time
	given   int // how many of the queue's messages were delivered
	settled int
	credit  int
	closed  bool
}

func (r *receiver) SessionID() string { return r.id }

func (r *receiver) LockedUntil() time.Time {
	r.broker.mu.Lock()
	defer r.broker.mu.Unlock()
	return r.until
}

// held tells whether the lock is ours. Called with mu held.
func (r *receiver) held() bool {
	return !r.closed && r.queue.holder == r && time.Now().Before(r.until)
}

func (r *receiver) Receive(ctx context.Context, limit int) ([]session.Message, error) {
	b := r.broker
	b.mu.Lock()
	if r.credit > 0 {
		b.violation("session %s: a receive with %d credits left on the link", r.id, r.credit)
	}
	b.mu.Unlock()
	if b.onReceive != nil {
		if err := b.onReceive(r); err != nil {
			return nil, err
		}
	}
	for {
		b.mu.Lock()
		if !r.held() {
			b.mu.Unlock()
			return nil, errLost
		}
		changed := b.changed
		from := r.given - r.settled
		n := min(limit, len(r.queue.messages)-from)
		if n > 0 || ctx.Err() != nil {
			messages := slices.Clone(r.queue.messages[from : from+n])
			r.given += n
			r.credit = limit - n
			b.mu.Unlock()
			if b.deliver != nil {
				messages = b.deliver(messages)
			}
			return messages, ctx.Err()
		}
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

func (r *receiver) RenewLock(ctx context.Context) (time.Time, error) {
	b := r.broker
	if b.onRenew != nil {
		if err := b.onRenew(ctx, r); err != nil {
			return time.Time{}, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !r.held() {
		return time.Time{}, errLost
	}
	r.until = time.Now().Add(b.lockTime)
	return r.until, nil
}

func (r *receiver) Settle(ctx context.Context, m session.Message, v session.Verdict) error {
	b := r.broker
	if b.onSettle != nil {
		if err := b.onSettle(ctx, r, m); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !r.held() {
		b.violation("session %s: message %d settled without the lock", r.id, m.SequenceNumber)
		return errLost
	}
	i := slices.IndexFunc(r.queue.messages, func(q session.Message) bool { return q.SequenceNumber == m.SequenceNumber })
	if i < 0 {
		b.violation("session %s: message %d settled twice", r.id, m.SequenceNumber)
		return nil
	}
	r.queue.messages = slices.Delete(r.queue.messages, i, i+1)
	r.settled++
	if v.DeadLetter {
		b.dead[m.SequenceNumber] = v
		return nil
	}
	b.completed[r.id] = append(b.completed[r.id], m.SequenceNumber)
	return nil
}

func (r *receiver) Close(context.Context) error {
	b := r.broker
	if b.onClose != nil {
		b.onClose()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.closed {
		b.violation("session %s: closed twice", r.id)
	}
	r.closed = true
	b.closes++
	if r.queue.holder == r {
		r.queue.holder = nil
	}
	b.wake()
	return nil
}

// handler notes what it is asked to apply.
type handler struct {
	broker *broker
	// apply decides; nil completes everything after a millisecond.
	apply func(ctx context.Context, id string, messages []session.Message) ([]session.Verdict, error)

	mu      sync.Mutex
	busy    map[string]bool
	applied map[string][]int64 // broker's numbers with a verdict, in order
	offered int                // calls of Apply
}

func newHandler(b *broker) *handler {
	return &handler{broker: b, busy: map[string]bool{}, applied: map[string][]int64{}}
}

type applier struct {
	handler *handler
	id      string
}

func (h *handler) Hold(id string) session.Applier { return &applier{h, id} }

func (a *applier) Apply(ctx context.Context, messages []session.Message) ([]session.Verdict, error) {
	h := a.handler
	h.mu.Lock()
	if h.busy[a.id] {
		h.broker.mu.Lock()
		h.broker.violation("session %s: two batches applied at once", a.id)
		h.broker.mu.Unlock()
	}
	h.busy[a.id] = true
	h.offered++
	h.mu.Unlock()

	h.broker.mu.Lock()
	if holder := h.broker.sessions[a.id].holder; holder == nil || !holder.held() {
		h.broker.violation("session %s: applied without the lock", a.id)
	}
	h.broker.mu.Unlock()

	verdicts, err := a.decide(ctx, messages)

	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range verdicts {
		h.applied[a.id] = append(h.applied[a.id], messages[i].SequenceNumber)
	}
	h.busy[a.id] = false
	return verdicts, err
}

func (a *applier) decide(ctx context.Context, messages []session.Message) ([]session.Verdict, error) {
	if a.handler.apply != nil {
		return a.handler.apply(ctx, a.id, messages)
	}
	time.Sleep(time.Millisecond)
	return make([]session.Verdict, len(messages)), nil
}

func (h *handler) seen(id string) []int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.applied[id])
}

func (h *handler) calls() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.offered
}

// run starts an engine in a synctest bubble and returns it with a stop that
// waits for Run and returns what it returned. The broker's notes are checked at
// the end of the test.
func run(t *testing.T, cfg session.Config, b *broker, h *handler) (engine *session.Engine, stop func() error) {
	t.Helper()
	return runAt(t, cfg, b, b, h)
}

// runAt is run with what hands out the broker's sessions.
func runAt(t *testing.T, cfg session.Config, at session.Acceptor, b *broker, h *handler) (engine *session.Engine, stop func() error) {
	t.Helper()
	engine = session.New(cfg, at, h, zerolog.Nop())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- engine.Run(ctx) }()
	var once sync.Once
	var err error
	stop = func() error {
		once.Do(func() {
			cancel()
			err = <-done
		})
		return err
	}
	t.Cleanup(func() {
		_ = stop()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, v := range b.violations {
			t.Errorf("forbidden: %s", v)
		}
	})
	return engine, stop
}

// until waits in fake time until cond holds, for an hour at most.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for range 360000 {
		if cond() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("after an hour of fake time: %s does not hold", what)
}

func small() session.Config {
	cfg := session.Defaults()
	cfg.MaxBytes = 1 << 40 // bounded by number, unless a test says so
	cfg.MaxSessions = 4
	cfg.AcceptFloor = 2
	cfg.BatchSize = 10
	return cfg
}
