package sessiontest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"changerelay/services/projector/internal/session"
)

func (s suite) lockIsRenewed(t *testing.T) {
	s.send(t, message("1", "a"))
	r := mustAccept(t, s.at(t))
	before := r.LockedUntil()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		until, err := r.RenewLock(ctx)
		if err != nil {
			t.Fatalf("renew: %v", err)
		}
		if until.After(before) {
			break
		}
	}
	complete(t, r, receive(t, r, 1)...)
	release(t, r)
}

// A renewal that the service throttles says so, and for how long, and the session stays held.
func (s suite) throttledRenewalIsTriedAgain(t *testing.T) {
	s.send(t, message("1", "a"))
	r := mustAccept(t, s.at(t))
	messages := receive(t, r, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	end := s.servers.Fault(t, map[string]any{"kind": "servicebus.throttle", "path": s.path(t)})
	_, err := r.RenewLock(ctx)
	if throttled, says := errors.AsType[*session.BusyError](err); !says || throttled.Pause <= 0 {
		t.Errorf("renew while the service is throttling: got %v, want an error that says so, and for how long", err)
	}
	end()
	if _, err := r.RenewLock(ctx); err != nil {
		t.Errorf("renew afterwards: %v", err)
	}
	complete(t, r, messages...)
	release(t, r)
}

// settleFails settles a message of a lost session.
func settleFails(t *testing.T, r session.Receiver, m session.Message) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := r.Settle(ctx, m, session.Verdict{}); err == nil {
		t.Error("settle a message of a lost session: got nil, want an error")
	}
}

func (s suite) lapsedLockGoesToAnother(t *testing.T) {
	s.send(t, message("1", "a"))
	r := mustAccept(t, s.at(t))
	m := receive(t, r, 1)[0]
	// Another process gets the session once the lock is over.
	other := mustAccept(t, s.at(t))
	settleFails(t, r, m)
	again := receive(t, other, 1)[0]
	if again.ID != "1" {
		t.Errorf("the other gets %s, want message 1", again.ID)
	}
	complete(t, other, again)
	release(t, other)
}

// loseLocks takes the test's sessions from their holders.
func (s suite) loseLocks(t *testing.T) {
	t.Helper()
	s.servers.Fault(t, map[string]any{"kind": "servicebus.lose-session-locks", "path": s.path(t)})
}

// another takes what a lost session left behind.
func (s suite) another(t *testing.T) {
	t.Helper()
	finish(t, eventually(t, s.at(t)))
}

// finish completes the one message of a session and gives it back.
func finish(t *testing.T, r session.Receiver) {
	t.Helper()
	complete(t, r, receive(t, r, 1)...)
	release(t, r)
}

func (s suite) lockLostBeforeReceive(t *testing.T) {
	s.send(t, message("1", "a"))
	r := mustAccept(t, s.at(t))
	s.loseLocks(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	// The official client may have taken the session again by itself; then what
	// it brings is its to settle.
	if messages, err := r.Receive(ctx, 1); err == nil {
		complete(t, r, messages...)
		release(t, r)
		return
	}
	s.another(t)
}

func (s suite) lockLostBetweenReceiveAndSettle(t *testing.T) {
	s.send(t, message("1", "a"))
	r := mustAccept(t, s.at(t))
	m := receive(t, r, 1)[0]
	s.loseLocks(t)
	other := eventually(t, s.at(t))
	settleFails(t, r, m)
	leave(t, r)
	finish(t, other)
}

func (s suite) lockLostBeforeRenewal(t *testing.T) {
	s.send(t, message("1", "a"))
	r := mustAccept(t, s.at(t))
	m := receive(t, r, 1)[0]
	s.loseLocks(t)
	other := eventually(t, s.at(t))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := r.RenewLock(ctx); err == nil {
		t.Error("renew the lock of a session that another holds: got nil, want an error")
	}
	settleFails(t, r, m)
	leave(t, r)
	finish(t, other)
}

func (s suite) linkTakenAway(t *testing.T) {
	s.send(t, message("1", "a"))
	r := mustAccept(t, s.at(t))
	m := receive(t, r, 1)[0]
	s.servers.Fault(t, map[string]any{"kind": "servicebus.detach", "path": s.path(t)})
	other := eventually(t, s.at(t))
	settleFails(t, r, m)
	leave(t, r)
	finish(t, other)
}

// leave gives back a session of which it is not known whether it is held.
func leave(t *testing.T, r session.Receiver) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_ = r.Close(ctx)
}

// A cancelled accept must not come by a session afterwards and keep it.
func (s suite) cancelledAcceptLeavesNothing(t *testing.T) {
	sessions := s.at(t)
	ctx, cancel := context.WithCancel(t.Context())
	accepting := make(chan error, 4)
	for slot := range 4 {
		go func() {
			_, err := sessions.Accept(ctx, slot)
			accepting <- err
		}()
	}
	// Each accept is under way or waits; either way it must end at once.
	other := s.at(t)
	if r, err := accept(t, other, 0, time.Second); err == nil {
		t.Fatalf("got session %q, want none", r.SessionID())
	}
	cancel()
	for range 4 {
		if err := <-accepting; err == nil {
			t.Error("a cancelled accept: got a session, want an error")
		}
	}
	s.send(t, message("1", "a"))
	r, err := accept(t, other, 0, 5*time.Second)
	if err != nil {
		t.Fatalf("accept after the cancelled ones: %v; want the session, which none of them keeps", err)
	}
	complete(t, r, receive(t, r, 1)...)
	release(t, r)
}

func (s suite) releaseGivesToAnotherAtOnce(t *testing.T) {
	s.send(t, numbered(2)...)
	first, second := s.at(t), s.at(t)
	r := mustAccept(t, first)
	complete(t, r, receive(t, r, 1)...)
	waiting := make(chan error, 1)
	var other session.Receiver
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		var err error
		other, err = second.Accept(ctx, 0)
		waiting <- err
	}()
	released := time.Now()
	release(t, r)
	if err := <-waiting; err != nil {
		t.Fatalf("accept: %v", err)
	}
	// The lock would have lasted ten seconds.
	if took := time.Since(released); took > 5*time.Second {
		t.Errorf("another got the session %s after it was given back, want at once", took)
	}
	if got := receive(t, other, 1)[0]; got.ID != "2" {
		t.Errorf("got %q, want message 2", got.ID)
	}
	release(t, other)
}

func (s suite) manySessionsSideBySide(t *testing.T) {
	const n = 60
	for i := range n {
		s.send(t, message("1", fmt.Sprint(i)))
	}
	sessions := s.at(t)
	type taken struct {
		r   session.Receiver
		err error
	}
	results := make(chan taken, n)
	for slot := range n {
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
			defer cancel()
			r, err := sessions.Accept(ctx, slot)
			results <- taken{r, err}
		}()
	}
	ids := map[string]bool{}
	for range n {
		got := <-results
		if got.err != nil {
			t.Errorf("accept: %v", got.err)
			continue
		}
		ids[got.r.SessionID()] = true
		complete(t, got.r, receive(t, got.r, 1)...)
		release(t, got.r)
	}
	if len(ids) != n {
		t.Errorf("got %d sessions, want %d", len(ids), n)
	}
}

func (s suite) closeEndsEverything(t *testing.T) {
	s.send(t, message("1", "a"))
	sessions := s.at(t)
	r := mustAccept(t, sessions)
	receive(t, r, 1)
	waiting := make(chan error, 1)
	go func() {
		_, err := accept(t, sessions, 1, 30*time.Second)
		waiting <- err
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := sessions.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := <-waiting; err == nil || errors.Is(err, session.ErrNoSession) {
		t.Errorf("an accept that waits while everything is closed: got %v, want an error", err)
	}
	if _, err := accept(t, sessions, 0, time.Second); err == nil {
		t.Error("accept after the close: got a session, want an error")
	}
	// The session went with the connection, and not with its lock.
	s.another(t)
}
