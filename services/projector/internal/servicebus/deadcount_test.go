package servicebus_test

import (
	"fmt"
	"maps"
	"testing"

	"changerelay/services/projector/internal/sandboxtest"
	"changerelay/services/projector/internal/session"
)

func TestDeadLetters_AreCountedByReasonAndNoFurtherThanAsked(t *testing.T) {
	t.Parallel()
	s := open(t, "counted", "projector")
	for i, reason := range []string{"A", "B", "A"} {
		sandboxtest.Send(t, servers, "counted", message(fmt.Sprint(i), "a"))
		r := mustAccept(t, s, 0)
		messages, err := r.Receive(t.Context(), 1)
		if err != nil || len(messages) != 1 {
			t.Fatalf("receive: got %d and %v", len(messages), err)
		}
		if err := r.Settle(t.Context(), messages[0], session.Verdict{DeadLetter: true, Reason: reason}); err != nil {
			t.Fatalf("dead-letter: %v", err)
		}
		release(t, r)
	}
	// Twice, since a count takes nothing away.
	for range 2 {
		if got, whole, err := s.CountDeadLetters(t.Context(), 10); err != nil || !whole || !maps.Equal(got, map[string]int{"A": 2, "B": 1}) {
			t.Errorf("got %v, whole %t and %v, want two of A and one of B", got, whole, err)
		}
	}
	if got, whole, err := s.CountDeadLetters(t.Context(), 2); err != nil || whole || !maps.Equal(got, map[string]int{"A": 1, "B": 1}) {
		t.Errorf("at most two: got %v, whole %t and %v, want the first two, not the whole", got, whole, err)
	}
}
