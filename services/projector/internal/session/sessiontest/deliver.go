package sessiontest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/services/projector/internal/sandboxtest"
	"changerelay/services/projector/internal/session"
)

func (s suite) messageComesWhole(t *testing.T) {
	want := message("id-1", "a")
	s.send(t, want, message("id-2", "a"))
	r := mustAccept(t, s.at(t))
	if r.SessionID() != "a" || time.Until(r.LockedUntil()) <= 0 || time.Until(r.LockedUntil()) > 11*time.Second {
		t.Errorf("session %q locked for %s, want a for ten seconds", r.SessionID(), time.Until(r.LockedUntil()))
	}
	messages := receive(t, r, 2)
	got := messages[0]
	if got.ID != want.ID || got.SessionID != want.SessionID || got.PartitionKey != want.PartitionKey || got.Subject != want.Subject ||
		got.ContentType != want.ContentType || got.ContentEncoding != want.ContentEncoding || !slices.Equal(got.Body, want.Body) || !maps.Equal(got.Properties, want.Properties) {
		t.Errorf("got %+v, want %+v", got.Message, want)
	}
	if got.SequenceNumber <= 0 || messages[1].SequenceNumber <= got.SequenceNumber || time.Since(got.EnqueuedAt) > time.Minute {
		t.Errorf("numbers %d and %d, enqueued at %s; want rising numbers and the time", got.SequenceNumber, messages[1].SequenceNumber, got.EnqueuedAt)
	}
	complete(t, r, messages...)
	release(t, r)
}

func (s suite) orderOverManyReceives(t *testing.T) {
	const n, each = 300, 50
	s.send(t, numbered(n)...)
	r := mustAccept(t, s.at(t))
	last := int64(0)
	for i := 0; i < n; i += each {
		for j, m := range receive(t, r, each) {
			if m.ID != fmt.Sprint(i+j+1) || m.SequenceNumber <= last {
				t.Fatalf("message %d: got %q with number %d after %d", i+j+1, m.ID, m.SequenceNumber, last)
			}
			last = m.SequenceNumber
			complete(t, r, m)
		}
	}
	release(t, r)
}

// What is asked for ahead comes while the messages before it are settled, in order,
// and no more than was asked for.
func (s suite) askedAheadComesMeanwhile(t *testing.T) {
	const n, each, ahead = 300, 50, 200
	s.send(t, numbered(n)...)
	r, carries := mustAccept(t, s.at(t)).(session.Carrier)
	if !carries {
		t.Skip("what comes between two receives is handed back by this adapter, so nothing is asked for ahead")
	}
	next := 1
	var settling sync.WaitGroup
	take := func() {
		t.Helper()
		messages := receive(t, r, each)
		for _, m := range messages {
			if m.ID != fmt.Sprint(next) {
				t.Fatalf("got message %q, want %d", m.ID, next)
			}
			next++
		}
		settling.Go(func() { complete(t, r, messages...) })
	}
	take()
	if err := r.Ask(ahead); err != nil {
		t.Fatalf("ask ahead: %v", err)
	}
	for range ahead / each {
		take()
	}
	settling.Wait()
	if came := r.Carried(); came != 0 {
		t.Errorf("%d messages have come that nobody asked for", came)
	}
	take()
	settling.Wait()
	release(t, r)
}

// What was asked for and is withdrawn comes no more, nor stays here where it has come, and
// is there for who takes the session next.
func (s suite) withdrawnComesNoMore(t *testing.T) {
	s.send(t, numbered(3)...)
	sessions := s.at(t)
	r, carries := mustAccept(t, sessions).(session.Carrier)
	if !carries {
		t.Skip("what comes behind a receive is handed back by this adapter")
	}
	receive(t, r, 1)
	if err := r.Ask(10); err != nil {
		t.Fatalf("ask ahead: %v", err)
	}
	await := time.NewTicker(5 * time.Millisecond)
	defer await.Stop()
	for r.Carried() < 2 && t.Context().Err() == nil {
		<-await.C
	}
	if err := r.Withdraw(t.Context()); err != nil {
		t.Fatalf("withdraw: %v", err)
	}
	if came := r.Carried(); came != 0 {
		t.Errorf("%d messages that had come are kept, want none", came)
	}
	s.send(t, message("4", "a"), message("5", "a"))
	for range 5 { // answers come behind messages that are on their way
		if _, err := r.RenewLock(t.Context()); err != nil {
			t.Fatalf("renew: %v", err)
		}
	}
	if came := r.Carried(); came != 0 {
		t.Errorf("%d messages have come, want none", came)
	}
	release(t, r)
	again := mustAccept(t, sessions)
	for i, m := range receive(t, again, 5) {
		if m.ID != fmt.Sprint(i+1) {
			t.Errorf("in place %d: got %q", i+1, m.ID)
		}
	}
	release(t, again)
}

func (s suite) noSessionIsSaidInTime(t *testing.T) {
	sessions := s.at(t)
	// The service may be asked to answer so shortly before the deadline that now
	// and then the answer is late by a hair.
	err := context.DeadlineExceeded
	for range 10 {
		if _, err = accept(t, sessions, 0, 2*time.Second); !errors.Is(err, context.DeadlineExceeded) {
			break
		}
	}
	if !errors.Is(err, session.ErrNoSession) {
		t.Errorf("got %v, want ErrNoSession", err)
	}
}

func (s suite) notSettledComesAgainUncounted(t *testing.T) {
	s.send(t, numbered(3)...)
	sessions := s.at(t)
	for range 12 { // more often than a message may be delivered
		r := mustAccept(t, sessions)
		if got := receive(t, r, 3); got[0].ID != "1" || got[2].ID != "3" {
			t.Fatalf("got messages %s to %s, want 1 to 3", got[0].ID, got[2].ID)
		}
		release(t, r)
	}
}

func (s suite) deadLetterKeepsItsReason(t *testing.T) {
	s.send(t, message("1", "a"))
	r := mustAccept(t, s.at(t))
	m := receive(t, r, 1)[0]
	long := strings.Repeat("ä", 5000)
	if err := r.Settle(t.Context(), m, session.Verdict{DeadLetter: true, Reason: "InvalidMessage", Description: long}); err != nil {
		t.Fatalf("dead-letter: %v", err)
	}
	release(t, r)
	dead, err := s.servers.Client(t).NewReceiverForSubscription(topic(t), "projector", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	got, err := dead.ReceiveMessages(ctx, 1, nil)
	if err != nil || len(got) != 1 {
		t.Fatalf("receive the dead letter: got %d and %v", len(got), err)
	}
	if *got[0].DeadLetterReason != "InvalidMessage" || !strings.HasPrefix(long, *got[0].DeadLetterErrorDescription) || len(*got[0].DeadLetterErrorDescription) != 4096 {
		t.Errorf("got reason %q and %d bytes of description, want InvalidMessage and the first 4096", *got[0].DeadLetterReason, len(*got[0].DeadLetterErrorDescription))
	}
}

// A receive that brings fewer than it asked for leaves credit behind. Whatever
// uses it up must not be lost, nor come out of order, nor be counted as delivered.
func (s suite) surplusCreditLosesNothing(t *testing.T) {
	all := numbered(6)
	s.send(t, all[:2]...)
	sessions := s.at(t)
	for range 12 { // more often than a message may be delivered
		r := mustAccept(t, sessions)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		got, err := r.Receive(ctx, 100)
		cancel()
		if err != nil || len(got) < 2 || got[0].ID != "1" || got[1].ID != "2" {
			t.Fatalf("got %d messages and %v, want 1 and 2 first", len(got), err)
		}
		if len(all) > 2 {
			s.send(t, all[2:]...)
			all = all[:2]
		}
		release(t, r)
	}
	r := mustAccept(t, sessions)
	for i, m := range receive(t, r, 6) {
		if m.ID != fmt.Sprint(i+1) {
			t.Errorf("message %d: got %q", i+1, m.ID)
		}
		complete(t, r, m)
	}
	release(t, r)
}

func (s suite) duplicateDelivery(t *testing.T) {
	s.send(t, numbered(2)...)
	sessions := s.at(t)
	s.servers.Fault(t, map[string]any{"kind": "servicebus.redeliver", "path": s.path(t), "times": 2})
	r := mustAccept(t, sessions)
	complete(t, r, receive(t, r, 2)...)
	release(t, r)
	// Both were answered as completed, and both come again.
	r = mustAccept(t, sessions)
	again := receive(t, r, 2)
	if again[0].ID != "1" || again[1].ID != "2" {
		t.Errorf("again: got %q and %q, want 1 and 2", again[0].ID, again[1].ID)
	}
	complete(t, r, again...)
	release(t, r)
	if r, err := accept(t, sessions, 0, 2*time.Second); err == nil {
		t.Errorf("got session %q after everything was completed", r.SessionID())
	}
}

func (s suite) oddMessageIsNoPanic(t *testing.T) {
	odd := message("1", "a")
	odd.Properties = map[string]any{"DeadLetterReason": int64(1)}
	s.send(t, odd)
	r := mustAccept(t, s.at(t))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	// An adapter may pass it on or say that it cannot be read.
	messages, err := r.Receive(ctx, 1)
	if errors.Is(err, session.ErrUndecodable) == (err == nil && len(messages) == 1) {
		t.Errorf("got %d messages and %v, want it or ErrUndecodable", len(messages), err)
	}
	release(t, r)
}

// Once a message that could not be decoded is gone, its session is as any other.
func (s suite) undecodableThatIsTakenOutIsForgotten(t *testing.T) {
	sandboxtest.SendUndecodable(t, s.servers, topic(t), message("1", "a"))
	s.send(t, message("2", "a"))
	sessions := s.at(t)
	r := mustAccept(t, sessions)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if messages, err := r.Receive(ctx, 1); !errors.Is(err, session.ErrUndecodable) {
		t.Fatalf("got %d messages and %v, want ErrUndecodable", len(messages), err)
	}
	_ = r.Close(ctx) // its link has ended
	sandboxtest.TakeUndecodable(t, s.servers, topic(t), "projector", "a")
	r = mustAccept(t, sessions)
	messages := receive(t, r, 1)
	if messages[0].ID != "2" {
		t.Errorf("got message %q, want 2", messages[0].ID)
	}
	complete(t, r, messages...)
	release(t, r)
}

// A body that is no data is not taken for none.
func (s suite) otherBodyIsNoData(t *testing.T) {
	for i, body := range []azservicebus.AMQPAnnotatedMessageBody{{Value: "hello"}, {Sequence: [][]any{{"hello", int64(1)}}}, {}} {
		sandboxtest.SendBody(t, s.servers, topic(t), message(fmt.Sprint(i), "a"), body)
	}
	r := mustAccept(t, s.at(t))
	messages := receive(t, r, 3)
	for i, want := range []string{"AMQP value: hello", "AMQP sequence: [[hello 1]]", ""} {
		if got := messages[i]; got.OtherBody != want || len(got.Body) != 0 {
			t.Errorf("message %d: got %q and a body of %d bytes, want %q", i, got.OtherBody, len(got.Body), want)
		}
	}
	complete(t, r, messages...)
	release(t, r)
}
