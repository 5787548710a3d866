package sessionlink

import (
	"errors"
	"testing"

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
