package backfill_test

import (
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/backfill"
)

// TestCopy_AsksForLessWhereTheTimeForAChunkIsTooShort has the server run into the deadline
// of a chunk three times, and watches how many documents are asked for.
func TestCopy_AsksForLessWhereTheTimeForAChunkIsTooShort(t *testing.T) {
	t.Parallel()
	some := bson.D{{Key: "version", Value: bson.D{{Key: "$gte", Value: 0}}}}
	for name, tt := range map[string]struct {
		plan  backfill.Plan
		field string // of the question that is too large
		want  []int64
	}{
		"the documents of a copy":   {backfill.Plan{Order: []string{"_id"}}, "limit", []int64{1000, 500, 250, 125}},
		"the documents of a resend": {backfill.Plan{Order: []string{"_id"}, Chunk: 40}, "limit", []int64{40, 20, 10, 5, 11, 21, 41}},
		"what is looked through":    {backfill.Plan{Order: []string{"_id"}, Filter: some, Searched: 400}, "skip", []int64{400, 200, 100, 50}},
	} {
		t.Run(name, func(t *testing.T) {
			events := collection(t)
			var documents []any
			for n := range 60 {
				documents = append(documents, document("a", n))
			}
			insertAll(t, events, documents)
			through, finds := asking(t, events, "find")
			err := events.Database().Client().Database("admin").RunCommand(t.Context(), bson.D{
				{Key: "configureFailPoint", Value: "failCommand"},
				{Key: "mode", Value: bson.D{{Key: "times", Value: 3}}},
				{Key: "data", Value: bson.D{
					{Key: "failCommands", Value: bson.A{"find"}},
					{Key: "namespace", Value: events.Database().Name() + "." + events.Name()},
					{Key: "errorCode", Value: 50}, // MaxTimeMSExpired
				}},
			}).Err()
			if err != nil {
				t.Fatal(err)
			}
			if got := len(copyAll(t, through, tt.plan, begin(t, events))); got != 60 {
				t.Errorf("copied are %d documents, want 60", got)
			}
			var got []int64
			for _, find := range finds.commands {
				if n, ok := find.Lookup(tt.field).AsInt64OK(); ok {
					got = append(got, n)
				}
			}
			if len(got) < len(tt.want) || !slices.Equal(got[:len(tt.want)], tt.want) {
				t.Errorf("asked for are %v, want %v first", got, tt.want)
			}
		})
	}
}
