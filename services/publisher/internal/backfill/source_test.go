package backfill_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/backfill"
	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/mapping"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/relay/relaytest"
	"changerelay/services/publisher/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// byVersion is the order of an events collection.
var byVersion = []string{"aggregateId", "version", "_id"}

func TestSource_ACopyFindsDocumentsOfEveryTypeOfIDInTheServersOrder(t *testing.T) {
	t.Parallel()
	events := collection(t)
	ids := []any{
		nil, 1, int64(2), 2.5, "a", "b",
		bson.D{{Key: "x", Value: 1}},
		bson.Binary{Subtype: 4, Data: make([]byte, 16)},
		bson.NewObjectID(), true, bson.DateTime(5),
		bson.Timestamp{T: 1},
		bson.MinKey{},
		bson.MaxKey{},
	}
	documents := []any{bson.D{{Key: "note", Value: "neither id nor version"}}}
	for _, id := range ids {
		for _, version := range []any{1, int64(2), 3.0, "four", nil} {
			documents = append(documents, bson.D{{Key: "aggregateId", Value: id}, {Key: "version", Value: version}})
		}
	}
	rand.Shuffle(len(documents), func(i, j int) { documents[i], documents[j] = documents[j], documents[i] })
	insertAll(t, events, documents)
	want := sorted(t, events, byVersion)
	for _, chunk := range []int{1, 2, 7, 1000} {
		got := keys(copyAll(t, events, backfill.Plan{Order: byVersion, Chunk: chunk}, begin(t, events)))
		if !slices.Equal(got, want) {
			t.Errorf("in chunks of %d the copy is %v, want %v", chunk, got, want)
		}
	}
}

func TestSource_ACopyGoesOnBehindAnyDocumentItWasStoppedAt(t *testing.T) {
	t.Parallel()
	t.Run("without an index", func(t *testing.T) {
		t.Parallel()
		goesOnAnywhere(t, collection(t))
	})
	for name, fields := range map[string][]string{"along a whole index": byVersion, "along a unique index": byVersion[:2]} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := collection(t)
			index(t, events, len(fields) == 2, fields...)
			goesOnAnywhere(t, events)
		})
	}
}

func goesOnAnywhere(t *testing.T, events *mongo.Collection) {
	t.Helper()
	fill(t, events, 4, 5)
	plan := backfill.Plan{Order: byVersion, Chunk: 3, Listed: 7}
	place := begin(t, events)
	all := copyAll(t, events, plan, place)
	for n, change := range all {
		saved := &placeKeeper{}
		if err := backfill.NewProgress(saved, place).Move(t.Context(), checkpoint.Place{Token: change.Token, Position: change.Position}); err != nil {
			t.Fatal(err)
		}
		rest := copyAll(t, events, plan, saved.Place)
		if !slices.Equal(keys(rest), keys(all[n+1:])) {
			t.Fatalf("resumed behind document %d the copy is %v, want %v", n+1, keys(rest), keys(all[n+1:]))
		}
		if len(rest) > 0 && rest[0].Position != all[n+1].Position {
			t.Fatalf("resumed behind document %d the position is %s, want %s", n+1, rest[0].Position, all[n+1].Position)
		}
	}
}

// TestSource_APublisherKilledAtEachChunkOfACopyLosesNothing ends a publisher behind
// each chunk, once before and once after its save, while others write.
func TestSource_APublisherKilledAtEachChunkOfACopyLosesNothing(t *testing.T) {
	t.Parallel()
	events := collection(t)
	fill(t, events, 6, 5)
	store := mongostate.New(events.Database().Client(), events.Database().Name()).Checkpoints()
	topic := &relaytest.Topic{}
	place := begin(t, events)
	var err error
	for kills := 0; !errors.Is(err, backfill.ErrDone); kills++ {
		claimed, claimErr := checkpoint.Claim(t.Context(), store, "stream", checkpoint.Claimant{Owner: "a", Create: true})
		if claimErr != nil {
			t.Fatal(claimErr)
		}
		if err := claimed.Pin(t.Context(), place); err != nil {
			t.Fatal(err)
		}
		ctx, kill := context.WithCancel(t.Context())
		err = run(ctx, &oneChunk{Source: backfill.New(events, backfill.Plan{Order: byVersion, Chunk: 4}, claimed.Place, zerolog.Nop())},
			topic, &mortal{
				Checkpointer: backfill.NewProgress(claimed, claimed.Place), life: ctx, kill: kill, beforeSave: kills%2 == 0,
			}, claimed.Term)
		kill()
		if kills < 10 {
			fill(t, events, 6, 1)
		}
	}
	wantPrefixes(t, topic)
}

func TestSource_ACopiedEventHasTheMessageIDOfItsInsert(t *testing.T) {
	t.Parallel()
	events := collection(t)
	place := begin(t, events)
	fill(t, events, 3, 4)
	stream := changestream.New(changestream.Of(events), changestream.Start{At: place.Start}, zerolog.Nop())
	defer stream.Close(t.Context())
	mapper := newMapper()
	streamed := map[string]contract.Sequence{}
	for len(streamed) < 12 {
		batch, err := stream.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range mapAll(t, mapper, batch.Changes) {
			streamed[event.ID] = event.Sequence
		}
	}
	for _, event := range mapAll(t, mapper, copyAll(t, events, backfill.Plan{Order: byVersion}, place)) {
		if sequence, known := streamed[event.ID]; !known || sequence != event.Sequence {
			t.Errorf("copied event %s of %s has sequence %q, the stream knows it: %v, with %q",
				event.ID, event.AggregateID, event.Sequence, known, sequence)
		}
		if event.Operation != contract.Snapshot {
			t.Errorf("copied event %s has operation %q, want snapshot", event.ID, event.Operation)
		}
	}
}

func TestSource_ACopySinceATimeLeavesOutOnlyWhatIsKnownToBeOlder(t *testing.T) {
	t.Parallel()
	events := collection(t)
	since := time.Unix(1_700_000_000, 0).UTC()
	at := func(d time.Duration) bson.ObjectID { return bson.NewObjectIDFromTimestamp(since.Add(d)) }
	insertAll(t, events, []any{
		bson.D{{Key: "_id", Value: 1}, {Key: "when", Value: since.Add(-time.Second)}, {Key: "out", Value: true}},
		bson.D{{Key: "_id", Value: 2}, {Key: "when", Value: since}},
		bson.D{{Key: "_id", Value: 3}, {Key: "when", Value: since.Add(time.Hour)}},
		bson.D{{Key: "_id", Value: 4}, {Key: "when", Value: at(-time.Second)}, {Key: "out", Value: true}},
		bson.D{{Key: "_id", Value: 5}, {Key: "when", Value: at(0)}},
		bson.D{{Key: "_id", Value: 6}, {Key: "when", Value: "2001-01-01T00:00:00Z"}},
		bson.D{{Key: "_id", Value: 7}},
		bson.D{{Key: "_id", Value: 8}, {Key: "when", Value: bson.A{since.Add(-time.Second)}}},
	})
	plan := backfill.Plan{Order: []string{"_id"}, Since: since, SinceField: "when"}
	got := keys(copyAll(t, events, plan, begin(t, events)))
	want := []string{`{"$numberInt":"2"}`, `{"$numberInt":"3"}`, `{"$numberInt":"5"}`, `{"$numberInt":"6"}`, `{"$numberInt":"7"}`, `{"$numberInt":"8"}`}
	if !slices.Equal(got, want) {
		t.Errorf("copied %v, want %v", got, want)
	}
}

func collection(t *testing.T) *mongo.Collection {
	t.Helper()
	return testserver.Mongo(t).Database(testserver.Name(t)).Collection("events")
}

// begin is the place of a copy that begins now.
func begin(t *testing.T, events *mongo.Collection) checkpoint.Place {
	t.Helper()
	now, err := changestream.Now(t.Context(), events.Database().Client())
	if err != nil {
		t.Fatal(err)
	}
	return checkpoint.Place{Start: now, Copy: &checkpoint.Copy{}}
}

// fill adds count versions to each of the aggregates, with ids in no order.
func fill(t *testing.T, events *mongo.Collection, aggregates, count int) {
	t.Helper()
	for a := range aggregates {
		id := fmt.Sprint("order-", a)
		have, err := events.CountDocuments(t.Context(), bson.D{{Key: "aggregateId", Value: id}})
		if err != nil {
			t.Fatal(err)
		}
		for n := range count {
			insertAll(t, events, []any{bson.D{
				{Key: "_id", Value: rand.Int64()},
				{Key: "aggregateId", Value: id},
				{Key: "version", Value: have + int64(n) + 1},
				{Key: "type", Value: "Happened"},
			}})
		}
	}
}

func insertAll(t *testing.T, events *mongo.Collection, documents []any) {
	t.Helper()
	if _, err := events.InsertMany(t.Context(), documents); err != nil {
		t.Fatal(err)
	}
}

func copyAll(t *testing.T, events *mongo.Collection, plan backfill.Plan, place checkpoint.Place) []relay.Change {
	t.Helper()
	source := backfill.New(events, plan, place, zerolog.Nop())
	var all []relay.Change
	for {
		batch, err := source.Read(t.Context())
		if errors.Is(err, backfill.ErrDone) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, batch.Changes...)
	}
}

// keys are the ids of changes' documents.
func keys(changes []relay.Change) []string {
	all := make([]string, 0, len(changes))
	for _, change := range changes {
		all = append(all, bson.Raw(change.Raw).Lookup("documentKey", "_id").String())
	}
	return all
}

// sorted are the ids of all documents as the server sorts them.
func sorted(t *testing.T, events *mongo.Collection, order []string) []string {
	t.Helper()
	var by bson.D
	for _, field := range order {
		by = append(by, bson.E{Key: field, Value: 1})
	}
	cursor, err := events.Find(t.Context(), bson.D{}, options.Find().SetSort(by))
	if err != nil {
		t.Fatal(err)
	}
	var all []bson.Raw
	if err := cursor.All(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, document := range all {
		ids = append(ids, document.Lookup("_id").String())
	}
	return ids
}

var paths = mapping.Paths{
	AggregateID: "aggregateId", Type: "type", Version: "version", Time: mapping.None, Data: mapping.None,
}

func newMapper() *mapping.Events {
	hidden, _ := mapping.NewHidden(nil, nil) // nothing to be wrong with
	return mapping.NewEvents(mapping.Options{
		Database: "shop", Collections: []string{"events"}, Hidden: hidden, TraceParent: mapping.None,
	}, paths, mapping.RefuseChanges)
}

func mapAll(t *testing.T, mapper *mapping.Events, changes []relay.Change) []contract.Event {
	t.Helper()
	var events []contract.Event
	for _, change := range changes {
		event, carries, err := mapper.Map(change)
		if err != nil || !carries {
			t.Fatalf("Map = %v, %v", carries, err)
		}
		events = append(events, event)
	}
	return events
}

// placeKeeper is a backfill.Mover.
type placeKeeper struct{ checkpoint.Place }

func (k *placeKeeper) Move(_ context.Context, to checkpoint.Place) error {
	k.Place = to
	return nil
}

// oneChunk gives a single batch, and then nothing until its reader is gone.
type oneChunk struct {
	relay.Source
	given bool
}

func (o *oneChunk) Read(ctx context.Context) (relay.Batch, error) {
	if o.given {
		<-ctx.Done()
		return relay.Batch{}, context.Cause(ctx)
	}
	o.given = true
	return o.Source.Read(ctx)
}

// mortal ends the publisher before or after its first save of a whole chunk, and
// saves nothing more then, not even at the end.
type mortal struct {
	relay.Checkpointer
	life       context.Context // the process's
	kill       func()
	beforeSave bool
}

func (m *mortal) Move(ctx context.Context, to checkpoint.Place) error {
	if err := m.life.Err(); err != nil {
		return err
	}
	defer m.kill()
	if m.beforeSave {
		return errors.New("killed")
	}
	return m.Checkpointer.Move(ctx, to)
}

func run(ctx context.Context, source relay.Source, topic relay.Sender, progress relay.Checkpointer, term int64) error {
	return relay.New(relay.Config{
		Term: term, MaxInFlight: 50, MaxInFlightBytes: 1 << 20, Senders: 4, BatchSize: 5, BatchBytes: 1 << 20,
		SendTimeout: time.Minute, ParkTimeout: time.Minute, CheckpointInterval: time.Millisecond, DrainTimeout: time.Minute,
	}, relay.Deps{
		Source: source, Mapper: newMapper(), Sender: topic, Parker: nil,
		Checkpoint: progress, MayAct: func() error { return nil },
		Counters: relay.NewCounters(ignore{}), Log: zerolog.Nop(),
	}).Run(ctx, nil)
}

type ignore struct{}

func (ignore) Observe(float64) {}

// wantPrefixes wants each aggregate's first copies in order of their versions,
// and at least those that were there when the copy began.
func wantPrefixes(t *testing.T, topic *relaytest.Topic) {
	t.Helper()
	versions, seen := map[string][]int64{}, map[string]bool{}
	for _, message := range topic.Messages() {
		event, err := contract.Decode(message, contract.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !seen[event.ID] {
			seen[event.ID] = true
			versions[event.AggregateID] = append(versions[event.AggregateID], event.Version.Number)
		}
	}
	if len(versions) != 6 {
		t.Errorf("%d aggregates were copied, want 6", len(versions))
	}
	for id, got := range versions {
		for i, version := range got {
			if version != int64(i)+1 {
				t.Fatalf("%s was copied as %v, want its versions in order without a gap", id, got)
			}
		}
		if len(got) < 5 {
			t.Errorf("%s was copied as %v, want the 5 that were there at the beginning", id, got)
		}
	}
}

func TestCopy_IsNotCompleteBeforeAsMuchIsKeptAsWasRead(t *testing.T) {
	t.Parallel()
	events := collection(t)
	fill(t, events, 2, 3)
	place := begin(t, events)
	source := backfill.New(events, backfill.Plan{Order: byVersion}, place, zerolog.Nop())
	batch, err := source.Read(t.Context())
	if err != nil || len(batch.Changes) != 6 {
		t.Fatalf("Read = %d changes, %v, want 6", len(batch.Changes), err)
	}
	if _, err := source.Read(t.Context()); !errors.Is(err, backfill.ErrDone) {
		t.Fatalf("Read = %v behind the last document, want ErrDone", err)
	}
	kept := backfill.NewProgress(&placeKeeper{}, place)
	for n, change := range batch.Changes {
		if err := source.Complete(kept); err == nil {
			t.Errorf("complete with %d of 6 kept", n)
		}
		if err := kept.Move(t.Context(), checkpoint.Place{Token: change.Token, Position: change.Position}); err != nil {
			t.Fatal(err)
		}
	}
	if err := source.Complete(kept); err != nil {
		t.Errorf("not complete with all kept: %v", err)
	}
}
