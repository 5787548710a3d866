package backfill_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/backfill"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/testserver"
)

// index makes an index along fields.
func index(t *testing.T, events *mongo.Collection, unique bool, fields ...string) {
	t.Helper()
	var keys bson.D
	for _, field := range fields {
		keys = append(keys, bson.E{Key: field, Value: 1})
	}
	create(t, events, keys, options.Index().SetUnique(unique))
}

func create(t *testing.T, events *mongo.Collection, keys bson.D, how *options.IndexOptionsBuilder) {
	t.Helper()
	if _, err := events.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: keys, Options: how}); err != nil {
		t.Fatal(err)
	}
}

// asked has the commands of a name that a copy sent.
type asked struct {
	mu       sync.Mutex
	commands []bson.Raw // guarded by mu
}

// asking is the collection for a client whose commands of a name are kept.
func asking(t *testing.T, events *mongo.Collection, name string) (*mongo.Collection, *asked) {
	t.Helper()
	a := &asked{}
	client, err := mongo.Connect(options.Client().ApplyURI(testserver.Get(t).MongoURI).SetMonitor(&event.CommandMonitor{
		Started: func(_ context.Context, started *event.CommandStartedEvent) {
			if started.CommandName == name {
				a.mu.Lock()
				defer a.mu.Unlock()
				a.commands = append(a.commands, slices.Clone(started.Command))
			}
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) })
	return client.Database(events.Database().Name()).Collection(events.Name()), a
}

// TestCopy_ExaminesEachKeyOnce explains every find of a copy: it reads its index
// from where it goes on, sorts nothing, and examines hardly more keys than it
// returns documents, at the end as at the beginning.
func TestCopy_ExaminesEachKeyOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		order  []string
		unique bool
		index  []string
	}{
		"documents along _id":        {order: []string{"_id"}},
		"events along a whole index": {order: byVersion, index: byVersion},
		"events of a unique index":   {order: byVersion, index: byVersion[:2], unique: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := collection(t)
			if tt.index != nil {
				index(t, events, tt.unique, tt.index...)
			}
			var documents []any
			for n := range 3000 {
				documents = append(documents, bson.D{{Key: "aggregateId", Value: fmt.Sprint(n % 300)}, {Key: "version", Value: n / 300}})
			}
			insertAll(t, events, documents)
			through, finds := asking(t, events, "find")
			if got := len(copyAll(t, through, backfill.Plan{Order: tt.order, Chunk: 100}, begin(t, events))); got != 3000 {
				t.Errorf("copied %d documents, want 3000", got)
			}
			chunks := 0
			for _, find := range finds.commands {
				keys, returned, stages := examined(t, events, find)
				if _, err := find.LookupErr("skip"); err == nil || returned == 0 {
					continue // looks for documents without a place, behind all others
				}
				chunks++
				// The last document is looked at again.
				if keys > returned*11/10 || strings.Contains(stages, `"SORT"`) || !strings.Contains(stages, `"IXSCAN"`) {
					t.Errorf("a chunk of %d documents examines %d keys, with %s", returned, keys, stages)
				}
			}
			if chunks < 30 {
				t.Errorf("%d chunks were seen, want 30", chunks)
			}
		})
	}
}

// TestCopy_SinceATimeLooksThroughABoundedPartOfTheIndex heals a collection of which only
// the first and the last documents in the order are new. However many are older, no
// find examines more of them than it is to look through.
func TestCopy_SinceATimeLooksThroughABoundedPartOfTheIndex(t *testing.T) {
	t.Parallel()
	const searched = 100
	for name, order := range map[string][]string{"documents along _id": {"_id"}, "events along an index": byVersion} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := collection(t)
			index(t, events, false, byVersion...)
			since := time.Unix(1_700_000_000, 0).UTC()
			var documents []any
			for n := range 1000 {
				when := since.Add(-time.Second)
				if n < 5 || n >= 995 {
					when = since
				}
				documents = append(documents, bson.D{
					{Key: "_id", Value: n}, {Key: "aggregateId", Value: "a"}, {Key: "version", Value: n}, {Key: "when", Value: when},
				})
			}
			insertAll(t, events, documents)
			through, finds := asking(t, events, "find")
			plan := backfill.Plan{Order: order, Since: since, SinceField: "when", Searched: searched}
			if got := len(copyAll(t, through, plan, begin(t, events))); got != 10 {
				t.Errorf("copied are %d documents, want 10", got)
			}
			for _, find := range finds.commands {
				if _, err := find.LookupErr("hint"); err != nil {
					continue // looks for documents without a place, behind all others
				}
				// Where it begins is examined again, and one more to see that it ends.
				if keys, _, stages := examined(t, events, find); keys > searched+2 {
					t.Errorf("%d keys are examined by %s, want %d at most", keys, stages, searched+2)
				}
			}
		})
	}
}

// examined are the keys that the server examines for a find, how many documents
// it returns, and its plan.
func examined(t *testing.T, events *mongo.Collection, find bson.Raw) (keys, returned int64, stages string) {
	t.Helper()
	var of bson.D
	elements, _ := find.Elements()
	for _, element := range elements {
		if slices.Contains([]string{"find", "filter", "sort", "hint", "min", "max", "limit", "skip"}, element.Key()) {
			of = append(of, bson.E{Key: element.Key(), Value: element.Value()})
		}
	}
	got, err := events.Database().RunCommand(t.Context(), bson.D{{Key: "explain", Value: of}, {Key: "verbosity", Value: "executionStats"}}).Raw()
	if err != nil {
		t.Fatal(err)
	}
	stats := got.Lookup("executionStats").Document()
	keys, _ = stats.Lookup("totalKeysExamined").AsInt64OK()
	returned, _ = stats.Lookup("nReturned").AsInt64OK()
	return keys, returned, got.Lookup("queryPlanner", "winningPlan").String()
}

func TestServing_SaysWhichIndexServesACopy(t *testing.T) {
	t.Parallel()
	whole := bson.D{{Key: "aggregateId", Value: 1}, {Key: "version", Value: 1}, {Key: "_id", Value: 1}}
	for name, tt := range map[string]struct {
		keys bson.D
		how  *options.IndexOptionsBuilder
		odd  any
		want bool
	}{
		"all fields":                    {keys: whole, want: true},
		"unique without _id":            {keys: whole[:2], how: options.Index().SetUnique(true), want: true},
		"without _id":                   {keys: whole[:2]},
		"the aggregate alone":           {keys: whole[:1], how: options.Index().SetUnique(true)},
		"another order":                 {keys: bson.D{whole[1], whole[0], whole[2]}},
		"sparse":                        {keys: whole, how: options.Index().SetSparse(true)},
		"partial":                       {keys: whole, how: options.Index().SetPartialFilterExpression(bson.D{{Key: "version", Value: bson.D{{Key: "$gt", Value: 0}}}})},
		"with a collation":              {keys: whole, how: options.Index().SetCollation(&options.Collation{Locale: "en", Strength: 2})},
		"where an array is a version":   {keys: whole, odd: bson.A{1, 2}},
		"where nothing is odd about it": {keys: whole, odd: 3, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := collection(t)
			if tt.how == nil {
				tt.how = options.Index()
			}
			create(t, events, tt.keys, tt.how)
			insertAll(t, events, []any{document("a", 1), document("b", tt.odd)})
			got, err := backfill.Serving(t.Context(), events, byVersion)
			if err != nil || (got != nil) != tt.want {
				t.Errorf("Serving = %v, %v, want one: %v", got, err, tt.want)
			}
		})
	}
}

// TestCopy_WithoutAnIndexSortsOnceForManyChunks counts how often the collection is
// gone through.
func TestCopy_WithoutAnIndexSortsOnceForManyChunks(t *testing.T) {
	t.Parallel()
	events := collection(t)
	fill(t, events, 10, 10)
	want := sorted(t, events, byVersion)
	through, sorts := asking(t, events, "aggregate")
	got := keys(copyAll(t, through, backfill.Plan{Order: byVersion, Chunk: 3, Listed: 40}, begin(t, events)))
	if !slices.Equal(got, want) {
		t.Errorf("the copy is %v, want %v", got, want)
	}
	if n := len(sorts.commands); n != 4 { // two full ones, the rest, and nothing
		t.Errorf("the collection was sorted %d times for %d chunks, want 4", n, len(want)/3)
	}
}

// TestCopy_ListsNoMoreKeysThanFit lists long keys into little room: it takes several passes,
// and none is taken for the last one before nothing is left.
func TestCopy_ListsNoMoreKeysThanFit(t *testing.T) {
	t.Parallel()
	events := collection(t)
	var documents []any
	for n := range 20 {
		documents = append(documents, document(strings.Repeat("a", 1000)+fmt.Sprint(n%7), n))
	}
	insertAll(t, events, documents)
	want := sorted(t, events, byVersion)
	through, passes := asking(t, events, "aggregate")
	got := keys(copyAll(t, through, backfill.Plan{Order: byVersion, Chunk: 3, ListedBytes: 5000, EndShort: true}, begin(t, events)))
	if !slices.Equal(got, want) {
		t.Errorf("the copy is %v, want %v", got, want)
	}
	if n := len(passes.commands); n != 5 { // of 5 keys each, and nothing
		t.Errorf("the collection was gone through %d times, want 5", n)
	}
}

// TestCopy_PassesWhatIsGoneSinceItWasListed deletes all that is left of what
// was listed, but for a document that loses its place and comes at the end.
func TestCopy_PassesWhatIsGoneSinceItWasListed(t *testing.T) {
	t.Parallel()
	events := collection(t)
	fill(t, events, 1, 12)
	source := backfill.New(events, backfill.Plan{Order: byVersion, Chunk: 2, Listed: 8}, begin(t, events), zerolog.Nop())
	batch, err := source.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := events.DeleteMany(t.Context(), bson.D{{Key: "version", Value: bson.D{{Key: "$gt", Value: 2}, {Key: "$lte", Value: 7}}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := events.UpdateOne(t.Context(), bson.D{{Key: "version", Value: 8}}, bson.D{{Key: "$set", Value: bson.D{{Key: "version", Value: bson.A{8}}}}}); err != nil {
		t.Fatal(err)
	}
	versions := versionsOf(batch.Changes)
	for {
		batch, err := source.Read(t.Context())
		if errors.Is(err, backfill.ErrDone) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, versionsOf(batch.Changes)...)
	}
	var want []string
	for _, version := range []int{1, 2, 9, 10, 11, 12} {
		want = append(want, fmt.Sprintf(`{"$numberLong":"%d"}`, version))
	}
	want = append(want, `[{"$numberInt":"8"}]`)
	if !slices.Equal(versions, want) {
		t.Errorf("copied versions %v, want %v", versions, want)
	}
}

func versionsOf(changes []relay.Change) (versions []string) {
	for _, change := range changes {
		versions = append(versions, bson.Raw(change.Raw).Lookup("fullDocument", "version").String())
	}
	return versions
}

// TestCopy_GoesOnWhenItsIndexIsDropped has the index go, and come back.
func TestCopy_GoesOnWhenItsIndexIsDropped(t *testing.T) {
	t.Parallel()
	events := collection(t)
	fill(t, events, 4, 5)
	index(t, events, false, byVersion...)
	want := sorted(t, events, byVersion)
	var log bytes.Buffer
	source := backfill.New(events, backfill.Plan{Order: byVersion, Chunk: 3}, begin(t, events), zerolog.New(&log))
	var got []string
	for n := 0; ; n++ {
		batch, err := source.Read(t.Context())
		if errors.Is(err, backfill.ErrDone) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, keys(batch.Changes)...)
		if n == 1 {
			if source.Index() == nil {
				t.Error("the index is not used")
			}
			if err := events.Indexes().DropAll(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the copy is %v, want %v", got, want)
	}
	if !strings.Contains(log.String(), "no index serves the copy") {
		t.Errorf("the log is %s, without a word of the index", &log)
	}
}

// TestCopy_HasChunksBySize copies large documents a few at a time, and more small
// ones at once than it begins with.
func TestCopy_HasChunksBySize(t *testing.T) {
	t.Parallel()
	const most = 4<<20 + 1<<20 // and one that does not fit
	for name, indexed := range map[string]bool{"along an index": true, "without an index": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := collection(t)
			if indexed {
				index(t, events, false, byVersion...)
			}
			var small []any
			for n := range 6000 {
				small = append(small, document("a", n))
			}
			insertAll(t, events, small)
			for n := range 12 {
				insertAll(t, events, []any{append(document("b", n), bson.E{Key: "data", Value: strings.Repeat("x", 1<<20-200)})})
			}
			source := backfill.New(events, backfill.Plan{Order: byVersion}, begin(t, events), zerolog.Nop())
			longest, large, copied := 0, 0, 0
			for {
				batch, err := source.Read(t.Context())
				if errors.Is(err, backfill.ErrDone) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				size := 0
				for _, change := range batch.Changes {
					size += len(bson.Raw(change.Raw).Lookup("fullDocument").Value)
				}
				longest, large, copied = max(longest, len(batch.Changes)), max(large, size), copied+len(batch.Changes)
			}
			if copied != 6012 || longest < 4000 || large > most {
				t.Errorf("copied %d documents in chunks of up to %d and %d bytes, want 6012, more than 4000 of the small ones at once, and at most %d bytes",
					copied, longest, large, most)
			}
		})
	}
}
