package readmodeltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// ReadModel is what the suite is about, and what it needs to look into it.
type ReadModel interface {
	delivery.Store
	delivery.Parking
	delivery.HaltedAggregates
	delivery.ParkedMessages
	delivery.Versions
	delivery.HaltTimes
	delivery.Unhalted
	// Discard takes an event's parked message away by an operator's decision.
	Discard(ctx context.Context, e *contract.Event) error
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
	t.Run("beginnings", func(t *testing.T) { t.Parallel(); beginningsSuite(t, fresh) })
	t.Run("rejections", func(t *testing.T) { t.Parallel(); rejectionsSuite(t, fresh) })
	t.Run("parking", func(t *testing.T) { t.Parallel(); parkingSuite(t, fresh) })
	t.Run("shared documents", func(t *testing.T) { t.Parallel(); keyedSuite(t, fresh) })
	t.Run("versions", func(t *testing.T) { t.Parallel(); versionsSuite(t, fresh) })
	t.Run("shell", func(t *testing.T) { t.Parallel(); shellSuite(t, fresh) })
	t.Run("parked again", func(t *testing.T) { t.Parallel(); keepsSuite(t, fresh) })
	t.Run("missing", func(t *testing.T) { t.Parallel(); missingSuite(t, fresh) })
	t.Run("unhalted", func(t *testing.T) { t.Parallel(); unhaltedSuite(t, fresh) })
	t.Run("discarding", func(t *testing.T) { t.Parallel(); discardingSuite(t, fresh) })
	t.Run("lifting", func(t *testing.T) { t.Parallel(); liftingSuite(t, fresh) })
	t.Run("several collections", func(t *testing.T) { t.Parallel(); jointSuite(t, fresh) })
	t.Run("depending on the document", func(t *testing.T) { t.Parallel(); dependingSuite(t, fresh) })
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
			[]call{{counts(1), []delivery.Outcome{applied}}, {counts(5), []delivery.Outcome{applied}}, {counts(4), []delivery.Outcome{repeated}}},
			`{"events":2}{"last":5}{"seen":[1,5]}`,
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
