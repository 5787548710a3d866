package readmodeltest

import (
	"errors"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// spread are the writes of an aggregate's events, each to documents of its own in
// two collections and to a shared one.
func spread(versions ...int64) []projection.Write {
	var writes []projection.Write
	for _, n := range versions {
		first, second, shared := count("c", "a", n), count("other", "a", n), keyedCount("total", "a", n)
		second.Event, shared.Event = first.Event, first.Event
		shared.Collection = "shared"
		writes = append(writes, first, second, shared)
	}
	return writes
}

// jointSuite is about events that write to several collections: each is stored
// in all of them or in none.
func jointSuite(t *testing.T, fresh func(t *testing.T) ReadModel) {
	wrongType := bson.D{{Key: "$inc", Value: bson.D{{Key: "seen", Value: 1}}}}
	for name, refused := range map[string]int{"in the first collection": 0, "in the second": 1, "in the shared one": 2} {
		for when, versions := range map[string][]int64{"": {1, 2, 3, 4}, ", in a batch with repeats": {1, 2, 1, 2, 3, 4}} {
			t.Run("an event that is refused "+name+when, func(t *testing.T) {
				t.Parallel()
				m := fresh(t)
				writes := spread(versions...)
				place := 3*(len(versions)-2) + refused // of event 3, with 4 behind it
				writes[place].Update = wrongType
				_, err := m.Write(t.Context(), writes)
				rejected, ok := errors.AsType[*delivery.RejectedError](err)
				if !ok || rejected.Index != place {
					t.Fatalf("got %#v, want write %d rejected", err, place)
				}
				// As the handler does it.
				if _, err := m.Write(t.Context(), writes[:3*(len(versions)-2)]); err != nil {
					t.Fatalf("without it: %v", err)
				}
				for collection, id := range map[string]string{"c": "a", "other": "a", "shared": "total"} {
					if got, err := m.Fields(t.Context(), collection, id); err != nil || got != `{"events":2}{"last":2}{"seen":[1,2]}` {
						t.Errorf("%s: got %s and %v, want the two events before it alone", collection, got, err)
					}
				}
			})
		}
	}
	t.Run("what one collection has and another has not", func(t *testing.T) {
		t.Parallel()
		m := fresh(t)
		if _, err := m.Write(t.Context(), []projection.Write{count("c", "a", 1), count("c", "a", 2)}); err != nil {
			t.Fatal(err)
		}
		got, err := m.Write(t.Context(), spread(1, 2, 3))
		want := []delivery.Outcome{repeated, applied, applied, repeated, applied, applied, applied, applied, applied}
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("got %v and %v, want %v", got, err, want)
		}
		for collection, id := range map[string]string{"c": "a", "other": "a", "shared": "total"} {
			if got, err := m.Fields(t.Context(), collection, id); err != nil || got != `{"events":3}{"last":3}{"seen":[1,2,3]}` {
				t.Errorf("%s: got %s and %v, want each event once", collection, got, err)
			}
		}
	})
	t.Run("a document that is not of the projector", func(t *testing.T) {
		t.Parallel()
		m := fresh(t)
		if err := m.PutForeign(t.Context(), "other", "a"); err != nil {
			t.Fatal(err)
		}
		_, err := m.Write(t.Context(), spread(1, 2))
		if rejected, ok := errors.AsType[*delivery.RejectedError](err); !ok || rejected.Index != 1 {
			t.Fatalf("got %#v, want write 1 rejected", err)
		}
		if got, err := m.Fields(t.Context(), "c", "a"); err != nil || got != "" {
			t.Errorf("c: got %s and %v, want nothing", got, err)
		}
	})
}
