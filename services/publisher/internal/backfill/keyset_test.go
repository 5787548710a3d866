package backfill_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/backfill"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/testserver"
)

// placed are values of all types that have a place in an order. Several of a
// kind are there where the order within the kind matters.
func placed() []any {
	decimal := func(text string) bson.Decimal128 {
		d, err := bson.ParseDecimal128(text)
		if err != nil {
			panic(err) // the texts below
		}
		return d
	}
	return []any{
		bson.MinKey{},
		nil,
		missing{},
		math.NaN(), decimal("NaN"), math.Inf(-1), decimal("-Infinity"), -1.5, int32(-1), int64(0), math.Copysign(0, -1), decimal("0.1"), 0.1,
		int32(1), 1.0, decimal("1"), int64(math.MaxInt64), float64(1 << 62), math.Inf(1), decimal("Infinity"),
		"", "a", "ab", "b", bson.Symbol("a"),
		bson.D{},
		bson.D{{Key: "x", Value: math.NaN()}},
		bson.D{{Key: "x", Value: 1}},
		bson.D{{Key: "x", Value: bson.A{1}}},
		bson.Binary{},
		bson.Binary{Data: []byte{1}},
		bson.Binary{Subtype: 4, Data: make([]byte, 16)},
		bson.ObjectID{},
		bson.NewObjectID(), false, true, bson.DateTime(-5), bson.DateTime(5),
		bson.Timestamp{},
		bson.Timestamp{T: 1},
		bson.DBPointer{DB: "a", Pointer: bson.ObjectID{}},
		bson.JavaScript("x"),
		bson.CodeWithScope{Code: "x", Scope: bson.D{}},
		bson.MaxKey{},
	}
}

// missing stands for no field at all.
type missing struct{}

func document(aggregate, version any) bson.D {
	d := bson.D{{Key: "_id", Value: rand.Int64()}}
	for _, field := range []bson.E{{Key: "aggregateId", Value: aggregate}, {Key: "version", Value: version}} {
		if _, none := field.Value.(missing); !none {
			d = append(d, field)
		}
	}
	return d
}

// TestCopy_GoesThroughValuesOfEveryTypeInTheServersOrder copies every pair of
// values in chunks so small that each is the end of one.
func TestCopy_GoesThroughValuesOfEveryTypeInTheServersOrder(t *testing.T) {
	t.Parallel()
	values := placed()
	for i, chunk := range []int{1, 1, 3, 50} {
		events := collection(t)
		if i > 0 {
			index(t, events, false, byVersion...)
		}
		var documents []any
		for range 400 {
			documents = append(documents, document(values[rand.IntN(len(values))], values[rand.IntN(len(values))]))
		}
		for _, value := range values { // each at least once in each place
			documents = append(documents, document(value, math.NaN()), document(math.NaN(), value), document("one", value))
		}
		insertAll(t, events, documents)
		want := sorted(t, events, byVersion)
		got := keys(copyAll(t, events, backfill.Plan{Order: byVersion, Chunk: chunk}, begin(t, events)))
		if !slices.Equal(got, want) {
			t.Errorf("in chunks of %d, with an index: %v, the copy has %d documents, want the %d of the collection in the order of the server", chunk, i > 0, len(got), len(want))
		}
	}
}

func TestCopy_OfEveryTypeOfIDHasAnEnd(t *testing.T) {
	t.Parallel()
	events := collection(t)
	var documents []any
	for _, id := range placed() {
		if _, none := id.(missing); !none {
			documents = append(documents, bson.D{{Key: "_id", Value: id}})
		}
	}
	for _, one := range documents {
		_, _ = events.InsertOne(t.Context(), one) // some are equal as keys
	}
	want := sorted(t, events, []string{"_id"})
	if got := keys(copyAll(t, events, backfill.Plan{Order: []string{"_id"}, Chunk: 1}, begin(t, events))); !slices.Equal(got, want) {
		t.Errorf("the copy is %v, want %v", got, want)
	}
}

// TestCopy_ReadsWhatHasNoPlaceBehindTheRest has some among many that have one, and
// goes on behind each document of the copy.
func TestCopy_ReadsWhatHasNoPlaceBehindTheRest(t *testing.T) {
	t.Parallel()
	values := placed()
	for name, unplaced := range map[string]any{
		"a regular expression":              bson.Regex{Pattern: "a"},
		"undefined":                         bson.Undefined{},
		"an array":                          bson.A{"a", 1},
		"an array of what sorts at the end": bson.A{bson.MaxKey{}},
		"an empty array":                    bson.A{},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := collection(t)
			odd := []any{document("one", unplaced), document(unplaced, 1), document(unplaced, unplaced)}
			even := []any{}
			for range 20 {
				even = append(even, document(values[rand.IntN(len(values))], values[rand.IntN(len(values))]))
			}
			insertAll(t, events, even)
			want := sorted(t, events, byVersion)
			insertAll(t, events, odd)
			all := sorted(t, events, []string{"_id"})
			want = append(want, slices.DeleteFunc(all, func(id string) bool { return slices.Contains(want, id) })...)
			plan := backfill.Plan{Order: byVersion, Chunk: 1 + rand.IntN(3), Searched: 1 + rand.IntN(9)}
			place := begin(t, events)
			copied := copyAll(t, events, plan, place)
			if got := keys(copied); !slices.Equal(got, want) {
				t.Fatalf("the copy is %v, want %v", got, want)
			}
			for n, change := range copied {
				saved := &placeKeeper{}
				if err := backfill.NewProgress(saved, place).Move(t.Context(), checkpoint.Place{Token: change.Token, Position: change.Position}); err != nil {
					t.Fatal(err)
				}
				if got := keys(copyAll(t, events, plan, saved.Place)); !slices.Equal(got, want[n+1:]) {
					t.Fatalf("resumed behind document %d the copy is %v, want %v", n+1, got, want[n+1:])
				}
			}
		})
	}
}

// TestCopy_ReadsNothingOlderThanItsBeginning has each chunk's snapshot bound to
// the time at which the stream will begin: a member that lags might show one
// from before it.
func TestCopy_ReadsNothingOlderThanItsBeginning(t *testing.T) {
	t.Parallel()
	events := collection(t)
	fill(t, events, 2, 3)
	var mu sync.Mutex
	var asked []bson.Raw
	client, err := mongo.Connect(options.Client().ApplyURI(testserver.Get(t).MongoURI).SetMonitor(&event.CommandMonitor{
		Started: func(_ context.Context, started *event.CommandStartedEvent) {
			mu.Lock()
			defer mu.Unlock()
			if first, _ := started.Command.Lookup("startTransaction").BooleanOK(); first && started.CommandName == "find" {
				asked = append(asked, slices.Clone(started.Command))
			}
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) })
	place := begin(t, events)
	copyAll(t, client.Database(events.Database().Name()).Collection(events.Name()), backfill.Plan{Order: byVersion, Chunk: 4}, place)
	if len(asked) < 2 {
		t.Fatalf("%d finds were seen, want one for each chunk", len(asked))
	}
	for _, find := range asked {
		seconds, increment, _ := find.Lookup("readConcern", "afterClusterTime").TimestampOK()
		after := checkpoint.ClusterTime{Seconds: seconds, Increment: increment + 1}
		if level, _ := find.Lookup("readConcern", "level").StringValueOK(); level != "snapshot" || after.Before(place.Start) {
			t.Errorf("a chunk is read with %s, want a snapshot right before %+v or later", find.Lookup("readConcern"), place.Start)
		}
	}
}

func TestCopy_MeetsAnEmptyArrayOnTheWayToAField(t *testing.T) {
	t.Parallel()
	for _, before := range []any{bson.MinKey{}, nil} {
		events := collection(t)
		insertAll(t, events, []any{
			bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: bson.D{{Key: "b", Value: before}}}},
			bson.D{{Key: "_id", Value: 2}, {Key: "a", Value: bson.A{}}},
			bson.D{{Key: "_id", Value: 3}, {Key: "a", Value: bson.D{{Key: "b", Value: 1}}}},
		})
		got := keys(copyAll(t, events, backfill.Plan{Order: []string{"a.b", "_id"}, Chunk: 1}, begin(t, events)))
		want := []string{`{"$numberInt":"1"}`, `{"$numberInt":"3"}`, `{"$numberInt":"2"}`}
		if !slices.Equal(got, want) {
			t.Errorf("behind %v the copy is %v, want %v", before, got, want)
		}
	}
}

// TestKeyOf_ADocumentWithoutAPlaceHasNone is what no query of a copy finds: a key of
// it would be that of another place.
func TestKeyOf_ADocumentWithoutAPlaceHasNone(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]any{
		"an array": bson.A{1}, "undefined": bson.Undefined{}, "a regular expression": bson.Regex{Pattern: "a"},
	} {
		document, err := bson.Marshal(bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: value}})
		if err != nil {
			t.Fatal(err)
		}
		if key, err := backfill.KeyOf(document, []string{"a", "_id"}); err == nil {
			t.Errorf("the key of a document with %s is %s, want none", name, key)
		}
	}
}
