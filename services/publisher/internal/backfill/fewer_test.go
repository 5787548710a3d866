package backfill_test

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/backfill"
	"changerelay/services/publisher/internal/slowlink"
	"changerelay/services/publisher/internal/testserver"
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
			runIntoDeadline(t, events, 3)
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

// TestRead_SaysWhyItDoesNotReadAChunkAndAsksForLessTheNextTime has the server run into the
// deadline of a chunk once.
func TestRead_SaysWhyItDoesNotReadAChunkAndAsksForLessTheNextTime(t *testing.T) {
	t.Parallel()
	events := collection(t)
	fill(t, events, 1, 60)
	through, finds := asking(t, events, "find")
	runIntoDeadline(t, events, 1)
	source := backfill.New(through, backfill.Plan{Order: []string{"_id"}, Chunk: 40, Once: true}, begin(t, events), zerolog.Nop())
	if batch, err := source.Read(t.Context()); err == nil {
		t.Errorf("read are %d documents, want why none is", len(batch.Changes))
	}
	if batch, err := source.Read(t.Context()); err != nil || len(batch.Changes) != 20 {
		t.Errorf("read are %d documents, %v, want half of a chunk", len(batch.Changes), err)
	}
	if n := len(finds.commands); n != 2 {
		t.Errorf("asked %d times, want twice", n)
	}
}

// TestRead_NamesTheSpeedThatADocumentNeedsBehindAnotherLargeOne has an index, along which the
// document before comes again.
func TestRead_NamesTheSpeedThatADocumentNeedsBehindAnotherLargeOne(t *testing.T) {
	t.Parallel()
	events := collection(t)
	index(t, events, false, byVersion...)
	for version := range 2 {
		one := bson.D{{Key: "_id", Value: version}, {Key: "aggregateId", Value: "a"}, {Key: "version", Value: version + 1}}
		insertAll(t, events, []any{append(one, bson.E{Key: "attachment", Value: strings.Repeat("x", 895_000)})})
	}
	plan := backfill.Plan{Order: byVersion, Chunk: 1, Once: true}
	first, err := backfill.New(events, plan, begin(t, events), zerolog.Nop()).Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	place, err := backfill.Behind(first.Changes[0].Token)
	if err != nil {
		t.Fatal(err)
	}
	place.Start = begin(t, events).Start
	server, err := url.Parse(testserver.Get(t).MongoURI)
	if err != nil {
		t.Fatal(err)
	}
	proxy := testserver.NewProxy(t, server.Host)
	proxy.Narrow(30_000)
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + proxy.Addr() + "/?directConnection=true").SetDialer(&slowlink.Dialer{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) })
	through := client.Database(events.Database().Name()).Collection(events.Name())
	_, err = backfill.New(through, plan, place, zerolog.Nop()).Read(t.Context())
	if err == nil || !strings.Contains(err.Error(), "at least 40 KB/s") {
		t.Errorf("read fails with %v, want one that names 40 KB/s, as both come in 45 s", err)
	}
}

// TestCopy_ReadsFewerOfAListThatItKeeps has the server run into the deadline for the
// documents of a list three times, and watches how many are asked for, and how often the
// collection is gone through for a list. It is not parallel: fail points are the whole
// server's.
func TestCopy_ReadsFewerOfAListThatItKeeps(t *testing.T) {
	for _, name := range []string{"find", "aggregate"} {
		t.Run(name, func(t *testing.T) {
			events := collection(t)
			var documents []any
			for n := range 60 {
				documents = append(documents, document("a", n))
			}
			insertAll(t, events, documents)
			through, commands := asking(t, events, name)
			runIntoDeadline(t, events, 3)
			if got := len(copyAll(t, through, backfill.Plan{Order: byVersion, Chunk: 40}, begin(t, events))); got != 60 {
				t.Errorf("copied are %d documents, want 60", got)
			}
			if name == "aggregate" {
				if n := len(commands.commands); n != 2 { // all, and nothing
					t.Errorf("the collection was gone through %d times, want twice", n)
				}
				return
			}
			var got []int
			for _, find := range commands.commands {
				if ids, ok := find.Lookup("filter", "_id", "$in").ArrayOK(); ok {
					values, _ := ids.Values()
					got = append(got, len(values))
				}
			}
			if want := []int{40, 20, 10, 5, 10, 20, 25}; !slices.Equal(got, want) {
				t.Errorf("asked for are %v, want %v", got, want)
			}
		})
	}
}

// runIntoDeadline has so many finds in a collection run into their deadlines.
func runIntoDeadline(t *testing.T, events *mongo.Collection, times int) {
	t.Helper()
	err := events.Database().Client().Database("admin").RunCommand(t.Context(), bson.D{
		{Key: "configureFailPoint", Value: "failCommand"},
		{Key: "mode", Value: bson.D{{Key: "times", Value: times}}},
		{Key: "data", Value: bson.D{
			{Key: "failCommands", Value: bson.A{"find"}},
			{Key: "namespace", Value: events.Database().Name() + "." + events.Name()},
			{Key: "errorCode", Value: 50}, // MaxTimeMSExpired
		}},
	}).Err()
	if err != nil {
		t.Fatal(err)
	}
}
