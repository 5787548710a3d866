package readmodeltest

import (
	"testing"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// marksSuite is about the marks that read documents of a halted aggregate have,
// from the halt to its lifting, whatever is written under it.
func marksSuite(t *testing.T, fresh func(t *testing.T) ReadModel) {
	m := fresh(t)
	ctx := t.Context()
	write := func(mark *projection.Halted, w projection.Write) {
		t.Helper()
		w.Halted = mark
		if got, err := m.Write(ctx, []projection.Write{w}); err != nil || got[0] != applied {
			t.Fatalf("write %s: got %v and %v, want it applied", w.Event.ID, got, err)
		}
	}
	want := func(when string, marked bool, places ...string) {
		t.Helper()
		for _, collection := range places {
			got, err := m.Marked(ctx, collection, "a")
			if err != nil || (got == "because") != marked || (got == "") == marked {
				t.Errorf("%s, the mark in %q: got %q and %v, want one: %t", when, collection, got, err, marked)
			}
		}
	}
	halt := func(e *contract.Event, reason string) {
		t.Helper()
		if _, err := m.Halt(ctx, delivery.Halt{Event: *e, Reason: reason}); err != nil {
			t.Fatal(err)
		}
	}
	write(nil, count("c", "a", 1))
	write(nil, count("c", "b", 1))
	if err := m.PutForeign(ctx, "other", "b"); err != nil {
		t.Fatal(err)
	}
	want("before the halt", false, "c")
	halt(Event("a", 2), "because")
	halt(Event("a", 2), "another reason")
	want("halted", true, "c")
	want("halted, without a document", false, "other")
	if got, err := m.Fields(ctx, "other", "a"); err != nil || got != "" {
		t.Errorf("a halt without a document: got %s and %v, want none made", got, err)
	}
	if got, err := m.Marked(ctx, "c", "b"); err != nil || got != "" {
		t.Errorf("the document of another aggregate: got mark %q and %v, want none", got, err)
	}
	halt(Event("b", 2), "because")
	if got, err := m.Fields(ctx, "other", "b"); err != nil || got != `{"mine":1}` {
		t.Errorf("a foreign document: got %s and %v, want it as it was", got, err)
	}

	if err := m.Park(ctx, []delivery.Parked{{Message: parkedMessage(9), Event: *Event("a", 9)}}); err != nil {
		t.Fatal(err)
	}
	mark, err := m.Mark(ctx, "a")
	if err != nil || mark == nil || mark.Reason != "because" || mark.EventID != "a-2" {
		t.Fatalf("mark: got %+v and %v, want that of the halt", mark, err)
	}
	write(mark, count("c", "a", 2))
	write(mark, count("other", "a", 2))
	want("redriven in part", true, "c", "other")
	write(mark, removal())
	write(mark, count("c", "a", 4))
	want("deleted and made anew by a redrive", true, "c")
	if lifted, err := m.Lift(ctx, "a"); err != nil || lifted {
		t.Fatalf("lift with a message parked: got %t and %v, want not", lifted, err)
	}
	want("with a message parked", true, "c", "other")
	if _, err := m.Unpark(ctx, Event("a", 9)); err != nil {
		t.Fatal(err)
	}
	if lifted, err := m.Lift(ctx, "a"); err != nil || !lifted {
		t.Fatalf("lift: got %t and %v, want lifted", lifted, err)
	}
	want("lifted", false, "c", "other")
	if mark, err := m.Mark(ctx, "a"); err != nil || mark != nil {
		t.Errorf("mark afterwards: got %+v and %v, want none", mark, err)
	}
}
