package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lockDuration of every entity in these tests.
const lockDuration = 30 * time.Second

// inBubble runs a test on a broker whose time is the bubble's.
func inBubble(t *testing.T, test func(t *testing.T, b *Broker)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b, stop := start(t, Config{})
		defer stop()
		test(t, b)
	})
}

// start runs a broker until stop, which also checks its books.
func start(t *testing.T, cfg Config) (b *Broker, stop func()) {
	t.Helper()
	b, err := New(cfg)
	if err != nil {
		t.Fatalf("New: got error %v, want none", err)
	}
	return b, run(t, b)
}

// run runs a broker until it is stopped.
func run(t *testing.T, b *Broker) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel) // a test that fails early stops it too
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: got error %v, want none", err)
		}
		checkBooks(t, b)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("got error %v, want none", err)
	}
}

func wantCondition(t *testing.T, err error, condition string) {
	t.Helper()
	var refusal *entity.Error
	if !errors.As(err, &refusal) || refusal.Condition != condition {
		t.Fatalf("got error %v, want the condition %s", err, condition)
	}
}

func makeQueue(t *testing.T, b *Broker, name string, p entity.QueueProperties) {
	t.Helper()
	p.LockDuration = lockDuration
	_, err := b.CreateQueue(name, p)
	must(t, err)
}

// makeTopic makes topic "changes" with subscription "sub".
func makeTopic(t *testing.T, b *Broker, tp entity.TopicProperties, sp entity.SubscriptionProperties) {
	t.Helper()
	sp.LockDuration = lockDuration
	_, err := b.CreateTopic("changes", tp)
	must(t, err)
	_, err = b.CreateSubscription("changes", "sub", sp)
	must(t, err)
}

const sub = "changes/Subscriptions/sub"

// msg makes a message; session "" is none.
func msg(id, session string) *entity.Message {
	m := &entity.Message{MessageID: id, Payload: []byte("payload of " + id)}
	if session != "" {
		m.SessionID = &session
	}
	return m
}

func send(t *testing.T, b *Broker, path string, msgs ...*entity.Message) {
	t.Helper()
	for _, m := range msgs {
		must(t, b.Send(t.Context(), path, []*entity.Message{m}))
	}
}

// sendIDs sends messages of one session, each by its id.
func sendIDs(t *testing.T, b *Broker, path, session string, ids ...string) {
	t.Helper()
	for _, id := range ids {
		send(t, b, path, msg(id, session))
	}
}

func openPlain(t *testing.T, b *Broker, path string) *Receiver {
	t.Helper()
	r, err := b.OpenReceiver(t.Context(), path, ReceiverOptions{})
	must(t, err)
	return r
}

func openSession(t *testing.T, b *Broker, path, id string) *Receiver {
	t.Helper()
	r, err := b.OpenReceiver(t.Context(), path, ReceiverOptions{Session: &SessionFilter{ID: id}})
	must(t, err)
	return r
}

func openNext(t *testing.T, b *Broker, path string) *Receiver {
	t.Helper()
	r, err := b.OpenReceiver(t.Context(), path, ReceiverOptions{Session: &SessionFilter{Next: true}})
	must(t, err)
	return r
}

func receive(t *testing.T, r *Receiver, limit int) []*entity.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	ds, err := r.Receive(ctx, limit)
	must(t, err)
	return ds
}

func ids(ds []*entity.Delivery) string {
	var s []string
	for _, d := range ds {
		s = append(s, d.MessageID)
	}
	return strings.Join(s, " ")
}

func wantIDs(t *testing.T, ds []*entity.Delivery, want string) {
	t.Helper()
	if got := ids(ds); got != want {
		t.Fatalf("messages: got %q, want %q", got, want)
	}
}

// wantNothing checks that a receiver finds nothing now.
func wantNothing(t *testing.T, r *Receiver) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if ds, err := r.Receive(ctx, 10); !errors.Is(err, context.Canceled) {
		t.Fatalf("Receive: got %q, %v, want nothing", ids(ds), err)
	}
}

func settleAll(t *testing.T, r *Receiver, o entity.Outcome, ds ...*entity.Delivery) {
	t.Helper()
	for _, d := range ds {
		must(t, r.Settle(d.LockToken, o))
	}
}

// checkBooks compares every counter and index with what the stores hold.
func checkBooks(t *testing.T, b *Broker) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, in := range b.inlets {
		used, seen := int64(0), map[*content]int{}
		stores := []*store{}
		for _, o := range in.inOrder {
			stores = append(stores, o.store, o.store.dead)
		}
		if in.topic {
			stores = append(stores, in.waiting)
		}
		for _, s := range stores {
			if err := checkStore(s, seen); err != nil {
				t.Errorf("store %s: %v", s.path, err)
			}
		}
		for _, s := range stores {
			for _, e := range s.bySeq.Items() {
				used += e.marks.size()
			}
		}
		for c, holders := range seen {
			used += c.size()
			if c.holders != holders {
				t.Errorf("holders of %s: got %d, want %d", c.msg.MessageID, c.holders, holders)
			}
		}
		if in.quota.used != used {
			t.Errorf("used quota of %s: got %d, want %d", in.name, in.quota.used, used)
		}
	}
}

func checkStore(s *store, seen map[*content]int) error {
	var counts entity.Counts
	locked, available := 0, 0
	messages := map[*session]int{}
	for _, e := range s.bySeq.Items() {
		seen[e.content]++
		switch e.state {
		case entity.StateActive:
			counts.Active++
		case entity.StateDeferred:
			counts.Deferred++
		case entity.StateScheduled:
			counts.Scheduled++
		}
		if e.lock != nil {
			locked++
		}
		if e.index >= 0 {
			available++
		}
		if e.session != nil {
			messages[e.session]++
		}
		if (e.lock == nil && e.state == entity.StateActive) != (e.index >= 0) {
			return fmt.Errorf("message %d: available is %t with lock %v in state %d", e.seq, e.index >= 0, e.lock, e.state)
		}
	}
	if counts != s.counts {
		return fmt.Errorf("counts: got %+v, want %+v", s.counts, counts)
	}
	if locked != len(s.locked) {
		return fmt.Errorf("locks: got %d, want %d", len(s.locked), locked)
	}
	for id, x := range s.sessions {
		available -= x.available.Len()
		if x.messages != messages[x] {
			return fmt.Errorf("messages of session %s: got %d, want %d", id, x.messages, messages[x])
		}
		if x.messages == 0 && x.state == nil && x.holder == nil {
			return fmt.Errorf("session %s is empty and not forgotten", id)
		}
		if (x.index >= 0) != (x.holder == nil && x.available.Len() > 0) {
			return fmt.Errorf("session %s: ready is %t with %d available", id, x.index >= 0, x.available.Len())
		}
		if x.index >= 0 && !slices.Contains(s.ready.Items, x) {
			return fmt.Errorf("session %s is not among the ready ones", id)
		}
	}
	if available != s.available.Len() {
		return fmt.Errorf("available: got %d, want %d", s.available.Len(), available)
	}
	return nil
}
