package readmodel_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
)

// A version is behind only in what neither its document of the aggregate nor its
// entry in the ledger has reached, however the live one notes it.
func TestBehind_TakesTheFurtherOfDocumentAndEntry(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	live := &projection.Version{Projection: "p", View: "p", Number: 1}
	version := live.Other(2)
	write := func(v *projection.Version, aggregate string, n int64, followed bool) {
		t.Helper()
		w := projection.Write{Projection: v.Account(), Keyed: true, Passed: true, Event: readmodeltest.Event(aggregate, n)}
		if followed {
			w = projection.Write{
				Projection: v.Account(), Collection: v.Collection(), ID: aggregate, Event: w.Event,
				Update: bson.D{{Key: "$set", Value: bson.D{{Key: "last", Value: n}}}},
			}
		}
		if _, err := s.Write(t.Context(), []projection.Write{w}); err != nil {
			t.Fatal(err)
		}
	}
	for _, of := range []struct {
		aggregate           string
		inLive, first, last bool // followed there, and at first and at last in the new version
		reached             int64
	}{
		{"a document behind an entry", true, true, false, 2},
		{"an entry behind a document", true, false, true, 2},
		{"of the ledger, a document behind an entry", false, true, false, 2},
		{"of the ledger, an entry behind a document", false, false, true, 2},
		{"behind", true, true, false, 1},
		{"behind in the ledger", false, false, true, 1},
	} {
		write(live, of.aggregate, 2, of.inLive)
		write(version, of.aggregate, 1, of.first)
		if of.reached == 2 {
			write(version, of.aggregate, 2, of.last)
		}
	}
	behind, err := s.Behind(t.Context(), version, live, 100)
	if got := slices.Sorted(maps.Keys(behind)); err != nil || !slices.Equal(got, []string{"behind", "behind in the ledger"}) {
		t.Errorf("behind: got %q and %v, want the two that are", got, err)
	}
}

// However many documents there are, no request compares more than it can in its time; and
// all are compared, whatever their keys are.
func TestBehind_ComparesALargeVersionInManyRequests(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	s := newSubject(t, &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		if e.CommandName != "aggregate" {
			return
		}
		stages, _ := e.Command.Lookup("pipeline").Array().Values()
		ids, _ := stages[0].Document().Lookup("$match", "_id", "$in").Array().Values()
		if len(ids) == 0 || len(ids) > 1000 {
			t.Errorf("a request compares %d documents: %s", len(ids), e.Command)
		}
		requests.Add(1)
	}})
	live := &projection.Version{Projection: "p", View: "p", Number: 1}
	version := live.Other(2)
	var documents, entries []any
	for n := range 2500 {
		aggregate := fmt.Sprintf("a%04d", n)
		documents = append(documents, bson.D{{Key: "_id", Value: aggregate}, {Key: "_relay", Value: bson.D{{Key: "sequence", Value: "0000000000000000002"}}}})
		entries = append(entries, bson.D{
			{Key: "_id", Value: bson.D{{Key: "projection", Value: version.Account()}, {Key: "aggregateId", Value: aggregate}}}, {Key: "sequence", Value: "0000000000000000002"},
		})
	}
	insert := func(collection string, all []any) {
		t.Helper()
		if _, err := s.db.Collection(collection).InsertMany(t.Context(), all); err != nil {
			t.Fatal(err)
		}
	}
	insert(live.Collection(), documents)
	insert(projection.Positions, entries[:2499])
	behind, err := s.Behind(t.Context(), version, live, 100)
	if got := slices.Sorted(maps.Keys(behind)); err != nil || !slices.Equal(got, []string{"a2499"}) {
		t.Errorf("behind: got %q and %v, want the last one", got, err)
	}
	if n := requests.Load(); n < 3 {
		t.Errorf("it was %d requests, want several", n)
	}
}
