package readmodeltest

import (
	"testing"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// positionsSuite is about what a message that was dead-lettered is compared with.
func positionsSuite(t *testing.T, fresh func(t *testing.T) ReadModel) {
	m := fresh(t)
	ctx := t.Context()
	want := func(what string, w projection.Write, sequence contract.Sequence, eventID string, first contract.Sequence) {
		t.Helper()
		if at, err := m.Position(ctx, &w); err != nil || at != (delivery.Position{Sequence: sequence, EventID: eventID, First: first}) {
			t.Errorf("%s: got %+v and %v, want %q of %q, begun with %q", what, at, err, sequence, eventID, first)
		}
	}
	third, fourth := Event("a", 3), Event("a", 4)
	want("no document", count("c", "a", 2), "", "", "")
	want("no entry of the ledger", keyedCount("total", "a", 2), "", "", "")
	if _, err := m.Write(ctx, []projection.Write{count("c", "a", 3), keyedCount("total", "a", 3), count("c", "a", 4), keyedCount("total", "a", 4)}); err != nil {
		t.Fatal(err)
	}
	want("a document", count("c", "a", 2), fourth.Sequence, fourth.ID, third.Sequence)
	want("the ledger's entry", keyedCount("another document", "a", 2), fourth.Sequence, fourth.ID, third.Sequence)
	want("another aggregate's document", count("c", "b", 2), "", "", "")
	want("another aggregate's entry", keyedCount("total", "b", 2), "", "", "")

	if _, err := m.Halt(ctx, delivery.Halt{Event: *Event("a", 5)}); err != nil {
		t.Fatal(err)
	}
	for n, returned := range map[int64]bool{5: true, 6: false} {
		if err := m.Park(ctx, []delivery.Parked{{Message: parkedMessage(n), Event: *Event("a", n), Returned: returned}}); err != nil {
			t.Fatal(err)
		}
	}
	got, done, err := m.Next(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	if done(); len(got) != 2 || !got[0].Returned || got[1].Returned {
		t.Errorf("parked: got %+v, want the first to be marked as put back", got)
	}
}
