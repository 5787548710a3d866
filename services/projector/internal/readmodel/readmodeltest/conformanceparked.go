package readmodeltest

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/session"
)

func parkingSuite(t *testing.T, fresh func(t *testing.T) ReadModel) {
	m := fresh(t)
	ctx := t.Context()
	if halt, err := m.Halted(ctx, "a"); err != nil || halt != "" {
		t.Fatalf("before: got halt %q and %v, want none", halt, err)
	}
	halt := stop(t, m, Event("a", 3))
	if again := stop(t, m, Event("a", 3)); again != halt {
		t.Errorf("halted again: got halt %q, want %q as it was", again, halt)
	}
	other := stop(t, m, Event("b", 1))
	for _, n := range []int64{3, 4, 3, 10, 9} {
		p := delivery.Parked{Message: parkedMessage(n), Event: *Event("a", n), Failed: n == 3, Reason: "because"}
		if err := m.Park(ctx, []delivery.Parked{p}); err != nil {
			t.Fatalf("park %d: %v", n, err)
		}
	}
	if got, err := m.Halted(ctx, "a"); err != nil || got != halt {
		t.Errorf("after: got halt %q and %v, want %q", got, err, halt)
	}
	if got, err := m.List(ctx, 10); err != nil || !maps.Equal(got, map[string]delivery.HaltID{"a": halt, "b": other}) {
		t.Errorf("list: got %v and %v, want a and b", got, err)
	}
	if got, err := m.List(ctx, 1); err != nil || len(got) != 1 {
		t.Errorf("list of one: got %v and %v, want one", got, err)
	}
	want := []contract.Sequence{Event("a", 3).Sequence, Event("a", 4).Sequence, Event("a", 9).Sequence, Event("a", 10).Sequence}
	if got, err := m.Parked(ctx, "a"); err != nil || !slices.Equal(got, want) {
		t.Errorf("parked: got %v and %v, want %v", got, err, want)
	}
}

// shellSuite parks the place of a message, and then the message.
func shellSuite(t *testing.T, fresh func(t *testing.T) ReadModel) {
	m := fresh(t)
	stop(t, m, Event("a", 1))
	whole := parkedMessage(1)
	place := whole
	place.Body, place.Properties = nil, nil
	for _, message := range []session.Message{place, whole, place} {
		if err := m.Park(t.Context(), []delivery.Parked{{Message: message, Event: *Event("a", 1), Reason: "because"}}); err != nil {
			t.Fatal(err)
		}
	}
	got, done, err := m.Next(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if done(); len(got) != 1 || string(got[0].Body) != `{"n":1}` || got[0].Properties["number"] != int64(1) {
		t.Errorf("next: got %+v, want the message whole", got)
	}
}

// keepsSuite parks a message that has some part of its own again, as another: it
// stays as it is.
func keepsSuite(t *testing.T, fresh func(t *testing.T) ReadModel) {
	for name, m := range map[string]contract.Message{
		"a body":                {Subject: "first", Body: []byte("x")},
		"a property":            {Subject: "first", Properties: map[string]any{"plain": "x"}},
		"a property's odd name": {Subject: "first", Properties: map[string]any{"$odd.name": "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := fresh(t)
			stop(t, model, Event("a", 1))
			for _, message := range []session.Message{{Message: m}, parkedMessage(1)} {
				if err := model.Park(t.Context(), []delivery.Parked{{Message: message, Event: *Event("a", 1), Reason: "because"}}); err != nil {
					t.Fatal(err)
				}
			}
			got, done, err := model.Next(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			if done(); len(got) != 1 || got[0].Subject != "first" || string(got[0].Body) != string(m.Body) {
				t.Errorf("next: got %+v, want the first as it was", got)
			}
		})
	}
}

// missingSuite counts what was parked and nobody has taken away.
func missingSuite(t *testing.T, fresh func(t *testing.T) ReadModel) {
	m := fresh(t)
	ctx := t.Context()
	stop(t, m, Event("a", 2))
	for _, n := range []int64{1, 2, 2, 3} {
		if err := m.Park(ctx, []delivery.Parked{{Message: parkedMessage(n), Event: *Event("a", n)}}); err != nil {
			t.Fatal(err)
		}
	}
	missing := func(want int64) {
		t.Helper()
		if got, err := m.Missing(ctx, "a"); err != nil || got != want {
			t.Errorf("missing: got %d and %v, want %d", got, err, want)
		}
	}
	missing(0)
	got, done, err := m.Next(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	if done(); len(got) < 2 || !got[0].Behind || got[1].Behind {
		t.Errorf("next: got %+v, want the one before the halt's event behind it, and no other", got)
	}
	for _, n := range []int64{1, 1} {
		if _, err := m.Unpark(ctx, Event("a", n)); err != nil {
			t.Fatal(err)
		}
	}
	missing(0)
	if _, err := m.Unpark(ctx, Event("a", 3)); err != nil {
		t.Fatal(err)
	}
	if err := m.Park(ctx, []delivery.Parked{{Message: parkedMessage(3), Event: *Event("a", 3)}}); err != nil {
		t.Fatal(err)
	}
	got, done, err = m.Next(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	if done(); len(got) != 2 || got[0].Behind || !got[1].Behind {
		t.Errorf("next: got %+v, want the one that was taken away and came again behind it", got)
	}
	missing(0)
	for n, want := range map[int64]bool{1: false, 2: true} {
		if there, err := m.IsParked(ctx, Event("a", n)); err != nil || there != want {
			t.Errorf("parked %d: got %t and %v, want %t", n, there, err, want)
		}
	}
	if events, err := m.Unhalted(ctx); err != nil || len(events) != 0 {
		t.Errorf("unhalted: got %v and %v, want none", events, err)
	}
}

// unhaltedSuite notes halts until they are lifted, and puts one back under which
// messages are missing.
func unhaltedSuite(t *testing.T, fresh func(t *testing.T) ReadModel) {
	m := fresh(t)
	ctx := t.Context()
	for _, aggregate := range []string{"a", "b"} {
		stop(t, m, Event(aggregate, 2))
	}
	if lifted, err := m.Lift(ctx, "b"); err != nil || !lifted {
		t.Fatalf("lift: got %t and %v", lifted, err)
	}
	if lost, err := m.Unhalted(ctx); err != nil || len(lost) != 0 {
		t.Errorf("unhalted: got %v and %v, want none", lost, err)
	}
	if _, err := m.Halt(ctx, delivery.Halt{Event: *Event("b", 3), Deleted: true}); err != nil {
		t.Fatal(err)
	}
	for aggregate, want := range map[string]int64{"a": 0, "b": 1} {
		if got, err := m.Missing(ctx, aggregate); err != nil || got != want {
			t.Errorf("missing of %q: got %d and %v, want %d", aggregate, got, err, want)
		}
	}
}

// discardingSuite discards an event: it is known as that for good, and is not parked
// again; another one of its sequence is.
func discardingSuite(t *testing.T, fresh func(t *testing.T) ReadModel) {
	m := fresh(t)
	ctx := t.Context()
	twin := *Event("a", 1)
	twin.ID = "a-1-again"
	park := func(e *contract.Event) error {
		return m.Park(ctx, []delivery.Parked{{Message: parkedMessage(1), Event: *e}})
	}
	for range 2 {
		stop(t, m, Event("a", 1))
		if err := errors.Join(park(&twin), park(Event("a", 2))); err != nil {
			t.Fatal(err)
		}
		if err := park(Event("a", 1)); err != nil && !errors.Is(err, delivery.ErrDiscarded) {
			t.Fatal(err)
		}
		if err := m.Discard(ctx, Event("a", 1)); err != nil {
			t.Fatal(err)
		}
		if err := park(Event("a", 1)); !errors.Is(err, delivery.ErrDiscarded) {
			t.Errorf("parked after its discard: got %v, want ErrDiscarded", err)
		}
		want := []contract.Sequence{twin.Sequence, Event("a", 2).Sequence}
		if got, err := m.Parked(ctx, "a"); err != nil || !slices.Equal(got, want) {
			t.Errorf("parked: got %v and %v, want the other two", got, err)
		}
		if got, err := m.Missing(ctx, "a"); err != nil || got != 0 {
			t.Errorf("missing: got %d and %v, want none", got, err)
		}
		for _, e := range []*contract.Event{&twin, Event("a", 2)} {
			if there, err := m.Unpark(ctx, e); err != nil || !there {
				t.Errorf("unpark %s: got %t and %v, want it", e.ID, there, err)
			}
		}
		if lifted, err := m.Lift(ctx, "a"); err != nil || !lifted {
			t.Errorf("lift: got %t and %v, want lifted", lifted, err)
		}
	}
	// One that is not parked is not discarded.
	if err := m.Discard(ctx, Event("a", 3)); err != nil {
		t.Fatal(err)
	}
	for e, want := range map[*contract.Event]bool{Event("a", 1): true, &twin: false, Event("a", 2): false, Event("a", 3): false, Event("b", 1): false} {
		if got, err := m.Discarded(ctx, e); err != nil || got != want {
			t.Errorf("discarded %s: got %t and %v, want %t", e.ID, got, err, want)
		}
	}
}

func liftingSuite(t *testing.T, fresh func(t *testing.T) ReadModel) {
	m := fresh(t)
	ctx := t.Context()
	park := func(n int64) error {
		return m.Park(ctx, []delivery.Parked{{Message: parkedMessage(n), Event: *Event("a", n)}})
	}
	if err := park(1); !errors.Is(err, delivery.ErrLifted) {
		t.Errorf("park without a halt: got %v, want ErrLifted", err)
	}
	if got, err := m.Parked(ctx, "a"); err != nil || len(got) != 0 {
		t.Errorf("parked without a halt: got %v and %v, want nothing", got, err)
	}
	halt := stop(t, m, Event("a", 1))
	if err := errors.Join(park(2), park(1)); err != nil {
		t.Fatal(err)
	}
	twin := *Event("a", 2)
	twin.ID = "a-2-again"
	if err := m.Park(ctx, []delivery.Parked{{Message: parkedMessage(2), Event: twin}}); err != nil {
		t.Fatal(err)
	}
	if lifted, err := m.Lift(ctx, "a"); err != nil || lifted {
		t.Errorf("lift with messages parked: got %t and %v, want not", lifted, err)
	}
	got, done, err := m.Next(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	if done(); len(got) < 2 || string(got[0].Body) != `{"n":1}` || got[0].Properties["number"] != int64(1) {
		t.Errorf("next: got %+v, want the first ones", got)
	}
	if got, done, err := m.Next(ctx, "b"); err != nil || done == nil || len(got) != 0 {
		t.Errorf("next of another: got %+v and %v, want none", got, err)
	}
	for _, e := range []*contract.Event{Event("a", 1), Event("a", 2), &twin} {
		for _, want := range []bool{true, false} {
			if there, err := m.Unpark(ctx, e); err != nil || there != want {
				t.Errorf("unpark %s: got %t and %v, want %t", e.ID, there, err, want)
			}
		}
	}
	for range 2 {
		if lifted, err := m.Lift(ctx, "a"); err != nil || !lifted {
			t.Errorf("lift: got %t and %v, want lifted", lifted, err)
		}
	}
	if got, err := m.Halted(ctx, "a"); err != nil || got != "" {
		t.Errorf("after: got halt %q and %v, want none", got, err)
	}
	if again := stop(t, m, Event("a", 1)); again == halt {
		t.Errorf("halted again after a lift: got halt %q, want another than before", again)
	}
}

// stop halts an event's aggregate.
func stop(t *testing.T, m ReadModel, e *contract.Event) delivery.HaltID {
	t.Helper()
	halt, err := m.Halt(t.Context(), delivery.Halt{Event: *e, Reason: "because"})
	if err != nil || halt == "" {
		t.Fatalf("halt %q: got halt %q and %v", e.AggregateID, halt, err)
	}
	return halt
}

// raceSuite parks and lifts at once: nothing is ever parked without a halt.
func raceSuite(t *testing.T, fresh func(t *testing.T) ReadModel) {
	m := fresh(t)
	ctx := t.Context()
	for n := range int64(30) {
		e := Event("a", n+1)
		stop(t, m, e)
		parked := make(chan error, 1)
		go func() { parked <- m.Park(ctx, []delivery.Parked{{Message: parkedMessage(n), Event: *e}}) }()
		lifted, liftErr := m.Lift(ctx, "a")
		parkErr := <-parked
		if liftErr != nil || parkErr != nil && !errors.Is(parkErr, delivery.ErrLifted) {
			t.Fatalf("lift: %v, park: %v", liftErr, parkErr)
		}
		messages, err := m.Parked(ctx, "a")
		if err != nil || lifted != (len(messages) == 0) || lifted != (parkErr != nil) {
			t.Fatalf("lifted %t, park %v, parked %v (%v): want it either lifted or parked", lifted, parkErr, messages, err)
		}
		if _, err := m.Unpark(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
}

func parkedMessage(n int64) session.Message {
	return session.Message{
		Message: contract.Message{
			ID: "id", SessionID: "a", Subject: "Happened", ContentType: contract.ContentTypeJSON,
			Properties: map[string]any{"text": "x", "number": n, "big": uint64(1 << 63), "when": time.Now(), "odd": struct{}{}},
			Body:       []byte(`{"n":1}`),
		},
		SequenceNumber: n,
		EnqueuedAt:     time.Now(),
	}
}
