package readmodel_test

import (
	"maps"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

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
