package readmodeltest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/session"
)

// ReadModel is what the suite is about, and what it needs to look into it.
type ReadModel interface {
	delivery.Store
	delivery.Parking
	delivery.HaltedAggregates
	delivery.Shelf
	delivery.Versions
	delivery.HaltTimes
	delivery.Unhalted
	AcceptHalts(ctx context.Context) (int64, error)

	// Fields returns a document without its bookkeeping, as Canonical writes
	// it; "deleted" for a tombstone, and "" when there is none.
	Fields(ctx context.Context, collection string, id any) (string, error)
	// Marked returns the reason of the halt that a document is marked with; ""
	// where it is not. Collections c and other are those of aggregates' own
	// documents.
	Marked(ctx context.Context, collection string, id any) (string, error)
	// Parked returns the sequences of an aggregate's parked messages in the
	// order of a redrive.
	Parked(ctx context.Context, aggregate string) ([]contract.Sequence, error)
	// PutForeign puts a document that is not of the projector.
	PutForeign(ctx context.Context, collection string, id any) error
}

// Event is the nth event of an aggregate.
func Event(aggregate string, n int64) *contract.Event {
	position := contract.StreamPosition(1700000000, uint32(n), fmt.Sprintf("82%08X", n))
	return &contract.Event{
		ID: fmt.Sprintf("%s-%d", aggregate, n), Source: "/shop/events", Type: "Happened", AggregateID: aggregate,
		Operation: contract.Insert, Time: time.UnixMilli(1700000000000 + n).UTC(), Position: position,
		Version: contract.VersionOf(n), Sequence: contract.SequenceOf(contract.VersionOf(n), position), Term: 3,
	}
}

// count is a write that a repeat would show in.
func count(collection, aggregate string, n int64) projection.Write {
	return projection.Write{
		Projection: "p", Collection: collection, ID: aggregate, Event: Event(aggregate, n),
		Update: bson.D{
			{Key: "$set", Value: bson.D{{Key: "last", Value: n}}},
			{Key: "$inc", Value: bson.D{{Key: "events", Value: 1}}},
			{Key: "$push", Value: bson.D{{Key: "seen", Value: bson.D{{Key: "$each", Value: bson.A{n}}, {Key: "$slice", Value: -3}}}}},
		},
	}
}

// removal deletes the document with its third event.
func removal() projection.Write {
	return projection.Write{Projection: "p", Collection: "c", ID: "a", Event: Event("a", 3), Delete: true}
}

func counts(versions ...int64) []projection.Write {
	writes := make([]projection.Write, len(versions))
	for i, n := range versions {
		writes[i] = count("c", "a", n)
	}
	return writes
}

const (
	applied  = delivery.Applied
	repeated = delivery.Repeated
)

// Conformance runs the suite. fresh returns an empty read model.
func Conformance(t *testing.T, fresh func(t *testing.T) ReadModel) {
	t.Run("writes", func(t *testing.T) { t.Parallel(); writesSuite(t, fresh) })
	t.Run("rejections", func(t *testing.T) { t.Parallel(); rejectionsSuite(t, fresh) })
	t.Run("parking", func(t *testing.T) { t.Parallel(); parkingSuite(t, fresh) })
	t.Run("shared documents", func(t *testing.T) { t.Parallel(); keyedSuite(t, fresh) })
	t.Run("versions", func(t *testing.T) { t.Parallel(); versionsSuite(t, fresh) })
	t.Run("shell", func(t *testing.T) { t.Parallel(); shellSuite(t, fresh) })
	t.Run("parked again", func(t *testing.T) { t.Parallel(); keepsSuite(t, fresh) })
	t.Run("missing", func(t *testing.T) { t.Parallel(); missingSuite(t, fresh) })
	t.Run("lifting", func(t *testing.T) { t.Parallel(); liftingSuite(t, fresh) })
	t.Run("several collections", func(t *testing.T) { t.Parallel(); jointSuite(t, fresh) })
	t.Run("positions", func(t *testing.T) { t.Parallel(); positionsSuite(t, fresh) })
	t.Run("halts that count", func(t *testing.T) { t.Parallel(); countingSuite(t, fresh) })
	t.Run("marks", func(t *testing.T) { t.Parallel(); marksSuite(t, fresh) })
	t.Run("parking beside lifting", func(t *testing.T) { t.Parallel(); raceSuite(t, fresh) })
}

func writesSuite(t *testing.T, fresh func(t *testing.T) ReadModel) {
	type call struct {
		writes []projection.Write
		want   []delivery.Outcome
	}
	tests := []struct {
		name  string
		calls []call
		want  string // of aggregate a in collection c
	}{
		{
			"in order, several of one document in one call",
			[]call{{counts(1, 2, 3), []delivery.Outcome{applied, applied, applied}}},
			`{"events":3}{"last":3}{"seen":[1,2,3]}`,
		},
		{
			"the same again changes nothing",
			[]call{{counts(1, 2), []delivery.Outcome{applied, applied}}, {counts(1, 2), []delivery.Outcome{repeated, repeated}}},
			`{"events":2}{"last":2}{"seen":[1,2]}`,
		},
		{
			"an older one after a newer one changes nothing",
			[]call{{counts(5), []delivery.Outcome{applied}}, {counts(4), []delivery.Outcome{repeated}}},
			`{"events":1}{"last":5}{"seen":[5]}`,
		},
		{
			"repeats before new ones in one call",
			[]call{{counts(1, 2, 3), []delivery.Outcome{applied, applied, applied}}, {counts(2, 3, 4, 5), []delivery.Outcome{repeated, repeated, applied, applied}}},
			`{"events":5}{"last":5}{"seen":[3,4,5]}`,
		},
		{
			"repeats between new ones in one call",
			[]call{{counts(1, 2, 1, 2, 3, 3, 4), []delivery.Outcome{applied, applied, repeated, repeated, applied, repeated, applied}}},
			`{"events":4}{"last":4}{"seen":[2,3,4]}`,
		},
		{
			"several documents and collections in one call",
			[]call{{
				[]projection.Write{count("c", "a", 1), count("other", "a", 1), count("c", "b", 1), count("c", "a", 2), count("other", "a", 2)},
				[]delivery.Outcome{applied, applied, applied, applied, applied},
			}, {
				[]projection.Write{count("c", "b", 1), count("other", "a", 2), count("c", "a", 3)},
				[]delivery.Outcome{repeated, repeated, applied},
			}},
			`{"events":3}{"last":3}{"seen":[1,2,3]}`,
		},
		{
			"a delete leaves nothing but its position",
			[]call{{append(counts(1, 2), removal()), []delivery.Outcome{applied, applied, applied}}},
			"deleted",
		},
		{
			"an old one does not bring a deleted document back",
			[]call{{append(counts(1), removal()), []delivery.Outcome{applied, applied}}, {counts(1, 2), []delivery.Outcome{repeated, repeated}}},
			"deleted",
		},
		{
			"a delete of what never was keeps older ones out too",
			[]call{{[]projection.Write{removal()}, []delivery.Outcome{applied}}, {counts(2), []delivery.Outcome{repeated}}},
			"deleted",
		},
		{
			"a newer one begins a deleted document anew",
			[]call{{append(append(counts(1, 2), removal()), counts(4)...), []delivery.Outcome{applied, applied, applied, applied}}},
			`{"events":1}{"last":4}{"seen":[4]}`,
		},
		{
			"a delete that comes again changes nothing",
			[]call{{append(append(counts(1), removal()), counts(4)...), []delivery.Outcome{applied, applied, applied}}, {[]projection.Write{removal()}, []delivery.Outcome{repeated}}},
			`{"events":1}{"last":4}{"seen":[4]}`,
		},
		{"no writes", []call{{nil, []delivery.Outcome{}}}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := fresh(t)
			for i, c := range tt.calls {
				got, err := m.Write(t.Context(), c.writes)
				if err != nil || !slices.Equal(got, c.want) {
					t.Fatalf("call %d: got %v and %v, want %v", i, got, err, c.want)
				}
			}
			if got, err := m.Fields(t.Context(), "c", "a"); err != nil || got != tt.want {
				t.Errorf("document: got %s and %v, want %s", got, err, tt.want)
			}
		})
	}
}

func rejectionsSuite(t *testing.T, fresh func(t *testing.T) ReadModel) {
	wrongType := func(n int64) projection.Write {
		w := count("c", "a", n)
		w.Update = bson.D{{Key: "$inc", Value: bson.D{{Key: "seen", Value: 1}}}}
		return w
	}
	twin := count("c", "a", 2)
	twin.Event = new(*twin.Event)
	twin.Event.ID = "a-2-again"
	tests := []struct {
		name   string
		before func(ctx context.Context, m ReadModel) error
		writes []projection.Write
		index  int
		known  []delivery.Outcome // of the writes before it
		want   string
	}{
		{
			"a write that does not fit the document", nil, append(counts(1, 2), wrongType(3), count("c", "a", 4)), 2,
			[]delivery.Outcome{applied, applied},
			`{"events":2}{"last":2}{"seen":[1,2]}`,
		},
		{
			"behind a repeat", func(ctx context.Context, m ReadModel) error { _, err := m.Write(ctx, counts(1)); return err },
			append(counts(1, 2), wrongType(3)), 2,
			[]delivery.Outcome{repeated, applied},
			`{"events":2}{"last":2}{"seen":[1,2]}`,
		},
		{
			"another event with the version of one that is applied", nil, append(counts(1, 2), twin), 2,
			[]delivery.Outcome{applied, applied},
			`{"events":2}{"last":2}{"seen":[1,2]}`,
		},
		{
			"another event with that version behind a repeat of the first",
			func(ctx context.Context, m ReadModel) error { _, err := m.Write(ctx, counts(1, 2)); return err },
			append(counts(1, 2), twin), 2,
			[]delivery.Outcome{repeated, repeated},
			`{"events":2}{"last":2}{"seen":[1,2]}`,
		},
		{
			"a document that is not of the projector", func(ctx context.Context, m ReadModel) error { return m.PutForeign(ctx, "c", "a") },
			counts(1), 0, nil, `{"mine":1}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := fresh(t)
			if tt.before != nil {
				if err := tt.before(t.Context(), m); err != nil {
					t.Fatalf("prepare: %v", err)
				}
			}
			got, err := m.Write(t.Context(), tt.writes)
			rejected, ok := errors.AsType[*delivery.RejectedError](err)
			if !ok || rejected.Index != tt.index || rejected.Reason == "" {
				t.Fatalf("got %#v, want write %d rejected with a reason", err, tt.index)
			}
			if !slices.Equal(got[:tt.index], tt.known) {
				t.Errorf("outcomes before it: got %v, want %v", got[:tt.index], tt.known)
			}
			if got, err := m.Fields(t.Context(), "c", "a"); err != nil || got != tt.want {
				t.Errorf("document: got %s and %v, want %s", got, err, tt.want)
			}
		})
	}
}

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
		if there, err := m.Shelved(ctx, Event("a", n)); err != nil || there != want {
			t.Errorf("shelved %d: got %t and %v, want %t", n, there, err, want)
		}
	}
	if events, err := m.Unhalted(ctx); err != nil || len(events) != 0 {
		t.Errorf("unhalted: got %v and %v, want none", events, err)
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
