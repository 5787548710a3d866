package readmodeltest

import (
	"testing"
	"time"

	"changerelay/services/projector/internal/delivery"
)

// countingSuite is about the halts that count for the brake.
func countingSuite(t *testing.T, fresh func(t *testing.T) ReadModel) {
	m := fresh(t)
	ctx := t.Context()
	latest := func(when string, limit, want int) []time.Time {
		t.Helper()
		times, err := m.LatestHalts(ctx, limit)
		if err != nil || len(times) != want {
			t.Fatalf("%s: got %d halts and %v, want %d", when, len(times), err, want)
		}
		return times
	}
	latest("before any", 10, 0)
	began := time.Now().Truncate(time.Millisecond)
	for _, aggregate := range []string{"c", "a", "b"} {
		for range 2 { // a halt that is there stays as it is
			if _, err := m.Halt(ctx, delivery.Halt{Event: *Event(aggregate, 1), Reason: "because"}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Millisecond) //nolint:forbidigo // halts at the same millisecond have no order
	}
	if _, err := m.Halt(ctx, delivery.Halt{Event: *Event("d", 1), Reason: "a gap", Uncounted: true}); err != nil {
		t.Fatal(err)
	}
	times := latest("three that count", 10, 3)
	if !times[0].After(times[1]) || !times[1].After(times[2]) || times[2].Before(began) {
		t.Errorf("got %v, want the latest first", times)
	}
	if two := latest("no more than asked", 2, 2); !two[0].Equal(times[0]) || !two[1].Equal(times[1]) {
		t.Errorf("got %v, want the latest two", two)
	}
	if lifted, err := m.Lift(ctx, "b"); err != nil || !lifted {
		t.Fatalf("lift: got %t and %v", lifted, err)
	}
	if left := latest("one lifted", 10, 2); !left[0].Equal(times[1]) {
		t.Errorf("got %v, want those that are not lifted", left)
	}
	if n, err := m.AcceptHalts(ctx); err != nil || n != 2 {
		t.Errorf("accept: got %d and %v, want two", n, err)
	}
	latest("accepted", 10, 0)
	if _, err := m.Halt(ctx, delivery.Halt{Event: *Event("e", 1), Reason: "because"}); err != nil {
		t.Fatal(err)
	}
	latest("one after them", 10, 1)
}
