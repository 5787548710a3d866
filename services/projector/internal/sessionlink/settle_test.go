package sessionlink

import (
	"context"
	"errors"
	"testing"
	"time"

	"changerelay/services/projector/internal/sandboxtest"
	"changerelay/services/projector/internal/session"
)

// A settlement beyond the namespace's credits is refused, and the session stays
// held. Tried again it is carried out, and not only said to be.
func TestSettle_WhatIsThrottledIsSettledLater(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]session.Verdict{
		"completed":     {},
		"dead-lettered": {DeadLetter: true, Reason: "Bad", Description: "in a test"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			throttling := sandboxtest.StartWith(t, sandboxtest.Topics("throttled"))
			sandboxtest.Send(t, throttling, "throttled", messages("a", 1, 2)...)
			s := open(t, at(t, throttling, "throttled"))
			r := mustAccept(t, s)
			m := receive(t, r, 2, 2)
			throttling.Become(t, `{"service_bus": {"credits_per_second": 1, "costs": {"settle": 1000}}}`)
			refused := 0
			for _, one := range m {
				err := r.Settle(t.Context(), one, v)
				if throttled, says := errors.AsType[*session.BusyError](err); says && throttled.Pause > 0 {
					refused++
				} else if err != nil {
					t.Fatalf("settle while the service is throttling: got %v, want nil or that it is busy", err)
				}
			}
			if refused == 0 {
				t.Fatal("got no settlement refused, want one")
			}
			if err := r.Settle(t.Context(), m[1], v); err == nil {
				t.Error("a settlement tried again while the service is throttling went well")
			}
			throttling.Become(t, `{"service_bus": {}}`)
			for _, one := range m {
				if err := r.Settle(t.Context(), one, v); err != nil {
					t.Errorf("settle later: %v", err)
				}
			}
			if kept := len(r.throttled); kept != 0 {
				t.Errorf("%d messages are kept that are settled", kept)
			}
			if err := r.Close(t.Context()); err != nil {
				t.Error(err)
			}
			wantNone(t, s) // for nothing is left in the session
		})
	}
}

// Settlements on a link that is ending, of which go-amqp takes none any more, end with
// their time.
func TestSettle_EndsWithItsTime(t *testing.T) {
	t.Parallel()
	const many = 20 // the first ones may still be taken
	sandboxtest.Send(t, servers, "ending", messages("a", 1, many)...)
	cfg := at(t, servers, "ending")
	way := sandboxtest.NewProxy(t, cfg.Access.Host)
	way.Open(t)
	cfg.Access.Host = way.Addr
	r := mustAccept(t, open(t, cfg))
	all := receive(t, r, many, many)
	way.Freeze()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.link.Close(over); err == nil {
		t.Fatal("the link has ended over a silent connection")
	}
	settled := make(chan error, many)
	for _, m := range all {
		go func() { settled <- r.Settle(over, m, session.Verdict{}) }()
	}
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	for range all {
		select {
		case err := <-settled:
			if !errors.Is(err, context.Canceled) || !r.doubted.Load() {
				t.Errorf("got %v, want that its time is over, and a doubt", err)
			}
		case <-limit.C:
			_ = r.wire.conn.Close()
			t.Fatal("a settlement goes on after its time")
		}
	}
}

// A link that ends because the service throttles is over: a settlement on it is not waited
// for in place, and the session is given back.
func TestSettle_OnALinkThatEndsThrottledIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	sandboxtest.Send(t, servers, "endsbusy", messages("a", 1, 1)...)
	s := open(t, at(t, servers, "endsbusy"))
	r := mustAccept(t, s)
	m := receive(t, r, 1, 1)
	servers.Fault(t, map[string]any{"kind": "servicebus.detach", "path": r.wire.cfg.entity(), "condition": "com.microsoft:server-busy"})
	mustAccept(t, open(t, at(t, servers, "endsbusy"))) // the service has let go of the session
	err := r.Settle(t.Context(), m[0], session.Verdict{})
	if _, busy := errors.AsType[*session.BusyError](err); err == nil || busy {
		t.Errorf("settle: got %v, busy %t; want an error, and none to wait out", err, busy)
	}
	if !r.doubted.Load() {
		t.Error("the session is not doubted")
	}
}
