package sessionlink

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"changerelay/services/projector/internal/sandboxtest"
	"changerelay/services/projector/internal/session"
)

// world has a sandbox be in a world.
func world(t *testing.T, e *sandboxtest.Endpoints, of string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, e.SandboxURL+"/world", strings.NewReader(of))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("the sandbox answers %s to the world %s", answer.Status, of)
	}
}

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
			world(t, throttling, `{"service_bus": {"credits_per_second": 1, "costs": {"settle": 1000}}}`)
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
			world(t, throttling, `{"service_bus": {}}`)
			for _, one := range m {
				if err := r.Settle(t.Context(), one, v); err != nil {
					t.Errorf("settle later: %v", err)
				}
			}
			if err := r.Close(t.Context()); err != nil {
				t.Error(err)
			}
			wantNone(t, s) // for nothing is left in the session
		})
	}
}
