package backfill_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/backfill"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/resend"
)

// What matches a filter is read once and in order, however little of the index is
// looked through at a time, and whatever the last of it was.
func TestFilter_AFilterLeavesTheOrderAsItIs(t *testing.T) {
	t.Parallel()
	filters := map[string]struct {
		filter bson.D
		narrow bool
	}{
		"few, far apart": {filter: bson.D{{Key: "version", Value: 4}}},
		"one aggregate":  {filter: bson.D{{Key: "aggregateId", Value: bson.D{{Key: "$in", Value: bson.A{"order-3"}}}}}, narrow: true},
		"two aggregates": {filter: bson.D{{Key: "aggregateId", Value: bson.D{{Key: "$in", Value: bson.A{"order-3", "order-1"}}}}}, narrow: true},
		"nothing":        {filter: bson.D{{Key: "version", Value: 40}}},
	}
	for name, fields := range map[string][]string{"no index": nil, "a whole index": byVersion, "a unique index": byVersion[:2]} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := collection(t)
			if fields != nil {
				index(t, events, len(fields) == 2, fields...)
			}
			fill(t, events, 5, 5)
			place := begin(t, events)
			for name, tt := range filters {
				want := matching(t, events, tt.filter)
				for _, searched := range []int{1, 3, 100} {
					for _, chunk := range []int{1, 2, 100} {
						plan := backfill.Plan{Order: byVersion, Filter: tt.filter, Narrow: tt.narrow, Searched: searched, Chunk: chunk}
						if got := keys(copyAll(t, events, plan, place)); !slices.Equal(got, want) {
							t.Errorf("%s, %d looked through, chunks of %d: read %v, want %v", name, searched, chunk, got, want)
						}
					}
				}
			}
		})
	}
}

// matching are the ids of the documents that match a filter, as the server sorts them.
func matching(t *testing.T, events *mongo.Collection, filter bson.D) []string {
	t.Helper()
	cursor, err := events.Find(t.Context(), filter, options.Find().SetSort(bson.D{{Key: "aggregateId", Value: 1}, {Key: "version", Value: 1}, {Key: "_id", Value: 1}}))
	if err != nil {
		t.Fatal(err)
	}
	var all []bson.Raw
	if err := cursor.All(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	ids := []string{}
	for _, document := range all {
		ids = append(ids, document.Lookup("_id").String())
	}
	return ids
}

func TestFilter_ACopyReadsFromATimeOnThatIsGivenForEachChunk(t *testing.T) {
	t.Parallel()
	events := collection(t)
	fill(t, events, 1, 4)
	place := begin(t, events)
	source := backfill.New(events, backfill.Plan{Order: byVersion, Chunk: 2}, place, zerolog.Nop())
	for n := range 2 {
		source.From(checkpoint.ClusterTime{Seconds: place.Start.Seconds, Increment: uint32(n)})
		batch, err := source.Read(t.Context())
		if err != nil || len(batch.Changes) != 2 {
			t.Fatalf("read %d documents, %v, want two", len(batch.Changes), err)
		}
		if want := fmt.Sprintf("%08x%08x.%016x", place.Start.Seconds, n, 2*n+1); string(batch.Changes[0].Position) != want {
			t.Errorf("the first of chunk %d is at %s, want %s", n, batch.Changes[0].Position, want)
		}
	}
}

// A resend drops what is listed behind each chunk: it lists no more than a chunk.
func TestFilter_AResendListsNoMoreThanItReads(t *testing.T) {
	t.Parallel()
	events := collection(t)
	fill(t, events, 3, 3)
	want := sorted(t, events, byVersion)
	c := config.Config{FieldAggregateID: byVersion[0], FieldVersion: byVersion[1], MaxInFlight: 8}
	plan, err := c.Resend(resend.Selection{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	through, passes := asking(t, events, "aggregate")
	source := backfill.New(through, plan, begin(t, events), zerolog.Nop())
	var read []string
	for {
		source.From(begin(t, events).Start)
		batch, err := source.Read(t.Context())
		if errors.Is(err, backfill.ErrDone) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		read = append(read, keys(batch.Changes)...)
	}
	if !slices.Equal(read, want) {
		t.Errorf("read %v, want %v", read, want)
	}
	limits := 0
	for _, command := range passes.commands {
		if limit, ok := command.Lookup("pipeline", "3", "$limit").AsInt64OK(); ok {
			limits++
			if limit != int64(plan.Chunk) {
				t.Errorf("%d keys are listed for a chunk of %d", limit, plan.Chunk)
			}
		}
	}
	if limits < len(want)/plan.Chunk {
		t.Errorf("keys were listed %d times, want it for each chunk of %d", limits, plan.Chunk)
	}
}

// TestFilter_ACopyReadsWhatCameBeforeTheTimeThatIsGiven writes behind the first chunk.
func TestFilter_ACopyReadsWhatCameBeforeTheTimeThatIsGiven(t *testing.T) {
	t.Parallel()
	for name, fields := range map[string][]string{"no index": nil, "an index": byVersion} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := collection(t)
			if fields != nil {
				index(t, events, false, fields...)
			}
			fill(t, events, 1, 4)
			place := begin(t, events)
			source := backfill.New(events, backfill.Plan{Order: byVersion, Chunk: 2, EndShort: true}, place, zerolog.Nop())
			if _, err := source.Read(t.Context()); err != nil {
				t.Fatal(err)
			}
			insertAll(t, events, []any{bson.D{{Key: "aggregateId", Value: "z"}, {Key: "version", Value: 1}}})
			read := 0
			for {
				source.From(begin(t, events).Start)
				batch, err := source.Read(t.Context())
				if errors.Is(err, backfill.ErrDone) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				read += len(batch.Changes)
			}
			if read != 3 {
				t.Errorf("read are %d documents behind the first chunk, want 3", read)
			}
		})
	}
}

// TestFilter_ACopyTellsWhatMayGoOnInItsNextChunk has an aggregate of three versions behind one
// of two, and more of the last when the end is reached.
func TestFilter_ACopyTellsWhatMayGoOnInItsNextChunk(t *testing.T) {
	t.Parallel()
	for name, fields := range map[string][]string{"no index": nil, "an index": byVersion} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := collection(t)
			if fields != nil {
				index(t, events, false, fields...)
			}
			fill(t, events, 1, 2)
			insertAll(t, events, []any{
				bson.D{{Key: "aggregateId", Value: "z"}, {Key: "version", Value: 1}},
				bson.D{{Key: "aggregateId", Value: "z"}, {Key: "version", Value: 2}},
				bson.D{{Key: "aggregateId", Value: "z"}, {Key: "version", Value: 3}},
			})
			place := begin(t, events)
			source := backfill.New(events, backfill.Plan{Order: byVersion, Chunk: 4, EndShort: true}, place, zerolog.Nop())
			for n, want := range []struct{ read, open int }{{4, 2}, {1, 0}} {
				batch, err := source.Read(t.Context())
				if err != nil || len(batch.Changes) != want.read || source.Open() != want.open {
					t.Fatalf("chunk %d has %d documents, %d open, %v, want %+v", n, len(batch.Changes), source.Open(), err, want)
				}
			}
			insertAll(t, events, []any{bson.D{{Key: "aggregateId", Value: "z"}, {Key: "version", Value: 4}}})
			if batch, err := source.Read(t.Context()); !errors.Is(err, backfill.ErrDone) {
				t.Errorf("read are %d documents, %v, want the end", len(batch.Changes), err)
			}
		})
	}
}
