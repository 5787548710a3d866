package sessionlink

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/rs/zerolog"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/sandboxtest"
	"changerelay/services/projector/internal/session"
	"changerelay/services/projector/internal/session/sessiontest"
)

func open(t *testing.T, cfg Config) *Subscription {
	t.Helper()
	s := newSubscription(cfg, zerolog.New(zerolog.NewTestWriter(t)))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// at is a configuration for a topic of a server, with the times of New.
func at(t *testing.T, e *sandboxtest.Endpoints, topic string) Config {
	t.Helper()
	cfg, err := config(sessiontest.Place{ConnectionString: e.ServiceBus, Topic: topic, Subscription: "projector", Linger: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Connections, cfg.connectTime, cfg.answerTime, cfg.tokenLife = 1, 30*time.Second, 5*time.Second, tokenLife
	return cfg
}

func accept(t *testing.T, s *Subscription, within time.Duration) (session.Receiver, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	return s.Accept(ctx, 0)
}

func mustAccept(t *testing.T, s *Subscription) *receiver {
	t.Helper()
	r, err := accept(t, s, 30*time.Second)
	if err != nil {
		t.Fatalf("accept: %v", err)
	}
	return r.(*receiver)
}

// wantNone wants that the service says that there is no session. It is asked to wait
// for a moment, and has all of answerTime to say so.
func wantNone(t *testing.T, s *Subscription) {
	t.Helper()
	w, err := s.endpoints[0].connected(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r, err := w.attach(t.Context(), 100*time.Millisecond); !errors.Is(s.failed(err), session.ErrNoSession) {
		t.Fatalf("accept: got %v and %v, want that there is no session", r, err)
	}
}

func receive(t *testing.T, r *receiver, limit, want int) []session.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	messages, err := r.Receive(ctx, limit)
	if err != nil || len(messages) != want {
		t.Fatalf("receive: got %d messages and %v, want %d", len(messages), err, want)
	}
	return messages
}

func messages(sessionID string, from, to int) []contract.Message {
	var all []contract.Message
	for i := from; i <= to; i++ {
		all = append(all, contract.Message{ID: fmt.Sprint(i), SessionID: sessionID, PartitionKey: sessionID, Subject: "Happened", Body: []byte("{}")})
	}
	return all
}

// What uses up the credit that a receive has left stays with the session, in
// order, and the next receive asks for no more than is missing.
func TestReceive_BringsWhatCameInTheMeantime(t *testing.T) {
	t.Parallel()
	sandboxtest.Send(t, servers, "carried", messages("a", 1, 2)...)
	r := mustAccept(t, open(t, at(t, servers, "carried")))
	got := receive(t, r, 10, 2)
	if r.owed != 8 {
		t.Errorf("got %d messages asked for and not returned, want 8", r.owed)
	}
	sandboxtest.Send(t, servers, "carried", messages("a", 3, 5)...)
	await := time.NewTicker(5 * time.Millisecond)
	defer await.Stop()
	for r.Carried() < 3 && t.Context().Err() == nil {
		<-await.C
	}
	got = append(got, receive(t, r, 3, 3)...)
	for i, m := range got {
		if m.ID != fmt.Sprint(i+1) {
			t.Errorf("message %d: got %q", i+1, m.ID)
		}
	}
	if r.owed != 5 || r.Carried() != 0 {
		t.Errorf("got %d messages asked for and not returned, %d carried, want 5 and none", r.owed, r.Carried())
	}
	// A receive of more asks for what is missing, and for no more.
	sandboxtest.Send(t, servers, "carried", messages("a", 6, 6)...)
	receive(t, r, 10, 1)
	if r.owed != 9 {
		t.Errorf("got %d messages asked for and not returned, want 9", r.owed)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A receive never has more on its way than was asked for.
func TestReceive_AsksForNoMoreThanItIsAskedFor(t *testing.T) {
	t.Parallel()
	sandboxtest.Send(t, servers, "credit", messages("a", 1, 50)...)
	r := mustAccept(t, open(t, at(t, servers, "credit")))
	for range 3 {
		receive(t, r, 10, 10)
		if m := r.link.Prefetched(); m != nil || r.owed != 0 {
			t.Fatalf("got %v carried and %d asked for besides, want nothing", m, r.owed)
		}
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A claim is put again before its token ends: what is held stays held, and new
// sessions are granted, long after the first token's end.
func TestClaims_ArePutAgainBeforeTheirEnd(t *testing.T) {
	t.Parallel()
	guarded := sandboxtest.StartWith(t, sandboxtest.Topics("claim"), "--check-sas")
	cfg := at(t, guarded, "claim")
	cfg.tokenLife = 6 * time.Second
	s := open(t, cfg)
	sandboxtest.Send(t, guarded, "claim", messages("a", 1, 1)...)
	r := mustAccept(t, s)
	m := receive(t, r, 1, 1)[0]
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for end, n := time.Now().Add(3*cfg.tokenLife), 1; time.Now().Before(end); n++ {
		if _, err := r.RenewLock(t.Context()); err != nil {
			t.Fatalf("renew: %v", err)
		}
		sandboxtest.Send(t, guarded, "claim", messages(fmt.Sprint("b", n), 1, 1)...)
		other := mustAccept(t, s)
		if err := other.Settle(t.Context(), receive(t, other, 1, 1)[0], session.Verdict{}); err != nil {
			t.Fatalf("complete in a new session: %v", err)
		}
		if err := other.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-again.C
	}
	if err := r.Settle(t.Context(), m, session.Verdict{}); err != nil {
		t.Errorf("complete: %v", err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestClaims_AreDueWellBeforeTheirEnd(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]time.Duration{
		time.Hour:        53 * time.Minute,
		3 * time.Minute:  2 * time.Minute,
		time.Second:      time.Second,
		-5 * time.Minute: time.Second,
	} {
		if got := dueIn(left); got != want {
			t.Errorf("with %s left: got %s, want %s", left, got, want)
		}
	}
}

// An attach that nobody answers, while nothing else is answered either, shows
// that the connection is dead: it is closed, and the next accept has another.
func TestAttach_ThatIsNotAnsweredEndsADeadConnection(t *testing.T) {
	t.Parallel()
	cfg := at(t, servers, "claim")
	way := sandboxtest.NewProxy(t, cfg.Access.Host)
	way.Open(t)
	cfg.Access.Host, cfg.answerTime = way.Addr, 500*time.Millisecond
	s := open(t, cfg)
	if _, err := accept(t, s, time.Second); err == nil {
		t.Fatal("got a session, want none")
	}
	w, err := s.endpoints[0].connected(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	way.Freeze()
	if _, err := accept(t, s, time.Second); err == nil {
		t.Fatal("got a session over a silent connection")
	}
	select {
	case <-w.conn.Done():
	case <-time.NewTimer(20 * time.Second).C:
		t.Fatal("the silent connection is still there")
	}
	sandboxtest.Send(t, servers, "claim", messages("b", 1, 1)...)
	r := mustAccept(t, s)
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// Lanes are used again, so that a session costs one attach and one detach.
func TestLane_IsUsedAgain(t *testing.T) {
	t.Parallel()
	s := open(t, at(t, servers, "lanes"))
	for i := range 20 {
		sandboxtest.Send(t, servers, "lanes", messages("a", i, i)...)
		r := mustAccept(t, s)
		if err := r.Settle(t.Context(), receive(t, r, 1, 1)[0], session.Verdict{}); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if lanes, _ := r.wire.counts(); lanes != 1 {
			t.Fatalf("got %d lanes, want 1", lanes)
		}
	}
}

// A claim that has ended although it should not have is put again by the accept
// that is refused for it.
func TestAttach_ThatIsRefusedForItsClaimPutsItAgain(t *testing.T) {
	t.Parallel()
	guarded := sandboxtest.StartWith(t, sandboxtest.Topics("claim"), "--check-sas")
	cfg := at(t, guarded, "claim")
	cfg.tokenLife = 3 * time.Second
	s := open(t, cfg)
	w, err := s.endpoints[0].connected(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.stop() // nobody puts the claim again in time
	<-time.NewTimer(cfg.tokenLife + time.Second).C
	wantNone(t, s)
}

func (w *wire) counts() (lanes, idle int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lanes, len(w.idle)
}

// Whatever may still be said on a lane is not said to the next session.
func TestLane_IsNotUsedAgainAfterADoubt(t *testing.T) {
	t.Parallel()
	sandboxtest.Send(t, servers, "doubted", messages("a", 1, 1)...)
	s := open(t, at(t, servers, "doubted"))
	r := mustAccept(t, s)
	m := receive(t, r, 1, 1)[0]
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Settle(over, m, session.Verdict{}); err == nil {
		t.Error("complete without time: got nil, want an error")
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, idle := r.wire.counts(); idle != 0 {
		t.Errorf("after a settlement without an answer: got %d lanes for others, want none", idle)
	}
	r = mustAccept(t, s)
	if err := r.Settle(t.Context(), receive(t, r, 1, 1)[0], session.Verdict{}); err != nil {
		t.Error(err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, idle := r.wire.counts(); idle != 1 {
		t.Errorf("after a session without a doubt: got %d lanes for others, want its own", idle)
	}
	wantNone(t, s)
	if _, idle := r.wire.counts(); idle != 0 {
		t.Errorf("after a refused attach: got %d lanes for others, want none", idle)
	}
}

// go-amqp keeps what it has not been told to be settled for as long as the lane lasts.
func TestLane_IsNotUsedAgainWithWhatWasNotSettled(t *testing.T) {
	t.Parallel()
	for name, handBack := range map[string]func(*testing.T, *receiver){
		"received": func(t *testing.T, r *receiver) { receive(t, r, 2, 2) },
		"come":     func(t *testing.T, r *receiver) { awaitCarried(t, r, 2) },
		"withdrawn": func(t *testing.T, r *receiver) {
			awaitCarried(t, r, 2)
			if err := r.Withdraw(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topic := "unsettled-" + name
			sandboxtest.Send(t, servers, topic, messages("a", 1, 2)...)
			r := mustAccept(t, open(t, at(t, servers, topic)))
			handBack(t, r)
			if err := r.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, idle := r.wire.counts(); idle != 0 {
				t.Errorf("got %d lanes for others, want none", idle)
			}
		})
	}
}

// awaitCarried asks for messages and waits until they have come.
func awaitCarried(t *testing.T, r *receiver, n int) {
	t.Helper()
	if err := r.Ask(n); err != nil {
		t.Fatal(err)
	}
	await := time.NewTicker(5 * time.Millisecond)
	defer await.Stop()
	for r.Carried() < n && t.Context().Err() == nil {
		<-await.C
	}
}

// Lanes that were of use at once are not all kept when they are no more.
func TestLane_NoMoreAreKeptThanMayBeOfUse(t *testing.T) {
	t.Parallel()
	w, err := open(t, at(t, servers, "lanes")).endpoints[0].connected(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []*amqp.Session
	for range idleLanes + 3 {
		lane, err := w.lane(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, lane)
	}
	for _, lane := range all {
		w.free(t.Context(), lane)
	}
	if _, idle := w.counts(); idle != idleLanes {
		t.Errorf("got %d lanes for others, want %d", idle, idleLanes)
	}
}

func TestLane_IsRefusedWhereTheConnectionHasNoMore(t *testing.T) {
	t.Parallel()
	s := open(t, at(t, servers, "full"))
	w, err := s.endpoints[0].connected(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	w.lanes = lanesMost
	w.mu.Unlock()
	if _, err := accept(t, s, 30*time.Second); !errors.Is(err, errLanes) {
		t.Errorf("got %v, want %v", err, errLanes)
	}
}

// An attach that is not answered leaves nothing behind that counts what comes to its link.
func TestAttach_ThatIsNotAnsweredIsNotRemembered(t *testing.T) {
	t.Parallel()
	w, err := open(t, at(t, servers, "answers")).endpoints[0].connected(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lane, err := w.lane(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.free(t.Context(), lane)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.attachOnce(over, time.Minute); err == nil {
		t.Error("attach without time: got nil, want an error")
	}
	w.frames.mu.Lock()
	defer w.frames.mu.Unlock()
	if got := len(w.frames.watched); got != 0 {
		t.Errorf("got %d links that are waited for, want none", got)
	}
}

// What comes while a receive waits may be a part of what it has asked for, or stand before
// it; what comes of others in the meantime says nothing about it.
func TestReceive_TellsWhetherAMessageIsComing(t *testing.T) {
	t.Parallel()
	sandboxtest.Send(t, servers, "coming", messages("a", 1, 1)...)
	s := open(t, at(t, servers, "coming"))
	r := mustAccept(t, s)
	if err := r.Settle(t.Context(), receive(t, r, 1, 1)[0], session.Verdict{}); err != nil {
		t.Fatal(err)
	}
	none := func() {
		t.Helper()
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.Receive(over, 1); err == nil {
			t.Error("receive without time: got nil, want an error")
		}
	}
	none()
	of := func(id string, bytes int) {
		t.Helper()
		m := messages(id, 1, 1)[0]
		m.Body = []byte(strings.Repeat("x", bytes))
		sandboxtest.Send(t, servers, "coming", m)
		other := mustAccept(t, s)
		if err := other.Settle(t.Context(), receive(t, other, 1, 1)[0], session.Verdict{}); err != nil {
			t.Error(err)
		}
		if err := other.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	of("small", 100)
	if r.Coming() {
		t.Error("something is coming, though only small messages of others came")
	}
	of("large", 200_000)
	if !r.Coming() {
		t.Error("nothing is coming, though a large message of another came that may stand before it")
	}
	r.wire.pace.carried.Add(standsBefore)
	if r.Coming() {
		t.Error("something is coming, though more came of others than can stand before it")
	}
	none()
	sandboxtest.Send(t, servers, "coming", messages("a", 2, 2)...)
	until(t, "it is coming", r.Coming)
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A connection that ends because the service throttles has the next accept wait.
func TestAccept_IsToldThatTheConnectionEndedForThrottling(t *testing.T) {
	t.Parallel()
	throttling := sandboxtest.StartWith(t, sandboxtest.Topics("throttled"))
	s := open(t, at(t, throttling, "throttled"))
	w, err := s.endpoints[0].connected(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := w.attach(t.Context(), 20*time.Second)
		ended <- s.failed(err)
	}()
	throttling.Fault(t, map[string]any{
		"kind": "servicebus.close", "condition": "com.microsoft:server-busy", "description": "Please wait 7 seconds and try again.",
	})
	err = <-ended
	if busy, ok := errors.AsType[*session.BusyError](err); !ok || busy.Pause != 7*time.Second {
		t.Errorf("got %v, want that the service is busy for 7 s", err)
	}
}
