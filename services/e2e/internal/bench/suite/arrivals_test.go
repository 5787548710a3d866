package suite

import (
	"testing"
	"time"

	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/orders"
)

// A document that has come to a version shows every event up to it: several may
// have been stored with one write.
func TestArrivals_AReadDocumentShowsAllEventsUpToItsVersion(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	event := func(aggregate string, version int64) orders.Event {
		return orders.Event{Aggregate: aggregate, Version: version}
	}
	s := newArrivals(nil)
	s.note([]orders.Event{event("a", 1), event("b", 1)}, at(0))
	s.note([]orders.Event{event("a", 2), event("a", 3)}, at(10))
	s.saw(validate.Apply{Document: "a", Version: 2}, at(30))
	if got := s.oldest(); !got.Equal(at(0)) {
		t.Errorf("oldest: got %v, want that of b", got)
	}
	s.saw(validate.Apply{Document: "b", Version: 1}, at(35))
	if got := s.oldest(); !got.Equal(at(10)) {
		t.Errorf("oldest: got %v, want that of a's third", got)
	}
	s.saw(validate.Apply{Document: "a", Version: 3}, at(40))
	s.saw(validate.Apply{Document: "a", Version: 3}, at(50)) // written again, and nothing new
	if got := s.oldest(); !got.IsZero() {
		t.Errorf("oldest: got %v, want none", got)
	}
	var took []time.Duration
	for _, w := range s.readableAfter(at(30)) {
		took = append(took, w.took())
	}
	want := []time.Duration{30 * time.Millisecond, 20 * time.Millisecond, 35 * time.Millisecond, 30 * time.Millisecond}
	if len(took) != len(want) || took[0] != want[0] || took[1] != want[1] || took[2] != want[2] || took[3] != want[3] {
		t.Errorf("took: got %v, want %v", took, want)
	}
	if got := len(s.readableAfter(at(36))); got != 1 {
		t.Errorf("readable after b: got %d events, want 1", got)
	}
}
