package backfill_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/backfill"
)

// TestCopy_GoesAlongFieldsThatAreInEachOther copies events whose _id is made of the aggregate
// and the version, and such whose version is in what names the aggregate. A server
// refuses to show a field and one inside it beside each other. The events have fields of
// names that a list of keys might use.
func TestCopy_GoesAlongFieldsThatAreInEachOther(t *testing.T) {
	t.Parallel()
	ways := map[string]func(*backfill.Plan){
		"everything":          func(*backfill.Plan) {},
		"what a filter finds": func(p *backfill.Plan) { p.Filter, p.Searched = bson.D{{Key: "type", Value: "placed"}}, 7 },
		"since a time":        func(p *backfill.Plan) { p.Since, p.SinceField, p.Searched = time.Unix(1, 0), "when", 7 },
	}
	for name, order := range map[string][]string{
		"in the _id":                   {"_id.stream", "_id.version", "_id"},
		"one in the other":             {"key", "key.version", "_id"},
		"beside one of a similar name": {"key", "keys", "_id"},
	} {
		for _, indexed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, with an index: %v", name, indexed), func(t *testing.T) {
				t.Parallel()
				events := collection(t)
				if indexed {
					index(t, events, false, order...)
				}
				var documents []any
				for n := range 50 {
					key := bson.D{{Key: "stream", Value: fmt.Sprint(n % 3)}, {Key: "version", Value: (n * 7) % 50}}
					documents = append(documents, bson.D{
						{Key: "_id", Value: key},
						{Key: "key", Value: key},
						{Key: "keys", Value: n},
						{Key: "type", Value: "placed"},
						{Key: "at", Value: bson.A{bson.D{{Key: "0", Value: 1}}}},
						{Key: "when", Value: time.Unix(2, 0)},
					})
				}
				insertAll(t, events, documents)
				want := sorted(t, events, order)
				for name, way := range ways {
					plan := backfill.Plan{Order: order, Chunk: 4}
					way(&plan)
					if got, err := untilFailed(t, events, plan); !errors.Is(err, backfill.ErrDone) || !slices.Equal(got, want) {
						t.Errorf("%s: the copy is %v, and ends with %v, want %v", name, got, err, want)
					}
				}
			})
		}
	}
}
