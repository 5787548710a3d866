package changestream_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func TestStream_AStreamThatStartsNowSeesWhatComesLaterAndNothingElse(t *testing.T) {
	t.Parallel()
	events := collection(t)
	insert(t, events, 1, 10)
	stream := from(t, events, now(t, events))
	insert(t, events, 11, 700)
	wantNumbers(t, read(t, stream, 690), 11, 700)
}

func TestStream_ResumingAtATokenMissesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	events := collection(t)
	start := now(t, events)
	insert(t, events, 1, 600)
	all := read(t, from(t, events, start), 600)
	for _, after := range []int{1, 255, 256, 257, 599} {
		resumed := from(t, events, changestream.Start{Token: all[after-1].Token})
		wantNumbers(t, read(t, resumed, 600-after), after+1, 600)
	}
}

func TestStream_PositionsRiseAlongTheStream(t *testing.T) {
	t.Parallel()
	events := collection(t)
	start := now(t, events)
	insert(t, events, 1, 50)
	all := read(t, from(t, events, start), 50)
	for i, change := range all {
		if _, _, err := change.Position.ClusterTime(); err != nil {
			t.Fatalf("position %q: %v", change.Position, err)
		}
		if change.Time.IsZero() {
			t.Fatalf("change %d has no time", i)
		}
		if i > 0 && change.Position <= all[i-1].Position {
			t.Fatalf("position %q does not rise above %q", change.Position, all[i-1].Position)
		}
	}
}

func TestStream_AnEmptyReadTellsHowFarTheSourceHasLooked(t *testing.T) {
	t.Parallel()
	events := collection(t)
	stream := from(t, events, now(t, events))
	var idle relay.Point
	testserver.Eventually(t, "an empty read with a token", func() bool {
		batch, err := stream.Read(t.Context())
		if err != nil || len(batch.Changes) > 0 {
			t.Fatalf("Read = %+v, %v, want an empty batch", batch, err)
		}
		idle = batch.Idle
		return idle.Token != nil
	})
	// The time is that of the token, and not that of the answer: the source may lag.
	if seconds, _, err := idle.Position.ClusterTime(); err != nil || idle.AsOf.Unix() != int64(seconds) {
		t.Errorf("idle at %+v, want a position and its time: %v", idle, err)
	}
	insert(t, events, 1, 3)
	wantNumbers(t, read(t, from(t, events, changestream.Start{Token: idle.Token}), 3), 1, 3)
}

func TestStream_ALostConnectionLosesNoChange(t *testing.T) {
	t.Parallel()
	direct := testserver.Mongo(t)
	proxy := testserver.NewProxy(t, host(t, testserver.Get(t).MongoURI))
	events := direct.Database(testserver.Name(t)).Collection("events")
	start := now(t, events)
	through := testserver.Connect(t, "mongodb://"+proxy.Addr()+"/?directConnection=true&serverSelectionTimeoutMS=1000")
	stream := from(t, through.Database(events.Database().Name()).Collection("events"), start)
	insert(t, events, 1, 20)
	got := read(t, stream, 10)
	proxy.Cut()
	insert(t, events, 21, 40)
	ctx, cancel := context.WithCancel(t.Context())
	reading := make(chan []relay.Change, 1)
	go func() {
		all, _ := readSome(ctx, stream, 40-len(got))
		reading <- all
	}()
	testserver.Eventually(t, "the stream to notice", func() bool { return stream.State().Err != nil })
	proxy.Mend()
	got = append(got, <-reading...)
	cancel()
	wantNumbers(t, got, 1, 40)
	if state := stream.State(); state.Err != nil || state.Reopened == 0 {
		t.Errorf("state is %+v, want no error and some reopening", state)
	}
}

// A connection that is open and dead shows nothing but silence.
func TestStream_AHalfOpenConnectionLosesNoChange(t *testing.T) {
	t.Parallel()
	proxy := testserver.NewProxy(t, host(t, testserver.Get(t).MongoURI))
	direct := collection(t)
	through := testserver.Connect(t, "mongodb://"+proxy.Addr()+"/?directConnection=true")
	stream := from(t, through.Database(direct.Database().Name()).Collection("events"), now(t, direct))
	insert(t, direct, 1, 20)
	got := read(t, stream, 20)
	proxy.Swallow()
	insert(t, direct, 21, 40)
	wantNumbers(t, append(got, read(t, stream, 20)...), 1, 40)
	if state := stream.State(); state.Reopened == 0 {
		t.Errorf("state is %+v, want the stream opened again", state)
	}
}

func TestStream_AnErrorThatReopeningCannotCureStopsTheStream(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t) // fail points are the whole server's
	client := testserver.Connect(t, servers.MongoURI)
	events := client.Database("shop").Collection("events")
	start := now(t, events)
	for code, reason := range map[int]changestream.Reason{286: changestream.HistoryLost, 260: changestream.TokenUnusable} {
		fail(t, client, "aggregate", code)
		_, err := from(t, events, start).Read(t.Context())
		halt, ok := errors.AsType[*changestream.HaltError](err)
		if !ok || halt.Reason != reason {
			t.Errorf("Read = %v, want a halt with %q", err, reason)
		}
	}
}

func TestStream_AStreamGoesOnAfterItsCollectionWasDropped(t *testing.T) {
	t.Parallel()
	events := collection(t)
	insert(t, events, 1, 1)
	stream := from(t, events, now(t, events))
	insert(t, events, 2, 3)
	if err := events.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := read(t, stream, 4) // two inserts, drop, invalidate
	insert(t, events, 4, 6)
	after := read(t, stream, 3)
	wantNumbers(t, before[:2], 2, 3)
	wantNumbers(t, after, 4, 6)
	if last, _ := bson.Raw(before[3].Raw).Lookup("operationType").StringValueOK(); last != "invalidate" {
		t.Errorf("the change after the drop is %q, want invalidate", last)
	}
}

func TestStream_AReadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	events := collection(t)
	stream := from(t, events, now(t, events))
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	if _, err := stream.Read(ctx); !errors.Is(err, cause) {
		t.Errorf("Read = %v, want the context's cause", err)
	}
}

func TestStream_AReplicaSetIsProbedWithoutAnError(t *testing.T) {
	t.Parallel()
	if err := changestream.Probe(t.Context(), testserver.Mongo(t)); err != nil {
		t.Errorf("Probe = %v, want nil", err)
	}
}

func TestStream_TheClockIsComparedWithTheSources(t *testing.T) {
	t.Parallel()
	client := testserver.Connect(t, testserver.Start(t).MongoURI)
	before := time.Now()
	ahead, err := changestream.ClockAhead(t.Context(), client)
	// The sandbox has this machine's clock, and tells it in milliseconds.
	if most := time.Since(before) + time.Millisecond; err != nil || ahead.Abs() > most {
		t.Errorf("ClockAhead = %v, %v, want at most the time that asking took, %v", ahead, err, most)
	}
}

func collection(t *testing.T) *mongo.Collection {
	t.Helper()
	return testserver.Mongo(t).Database(testserver.Name(t)).Collection("events")
}

func now(t *testing.T, events *mongo.Collection) changestream.Start {
	t.Helper()
	at, err := changestream.Now(t.Context(), events.Database().Client())
	if err != nil {
		t.Fatal(err)
	}
	return changestream.Start{At: at}
}

func from(t *testing.T, events *mongo.Collection, start changestream.Start) *changestream.Stream {
	t.Helper()
	stream := changestream.New(changestream.Of(events), start, zerolog.Nop())
	t.Cleanup(func() { stream.Close(context.WithoutCancel(t.Context())) })
	return stream
}

// insert inserts documents whose ids are the numbers first to last.
func insert(t *testing.T, events *mongo.Collection, first, last int) {
	t.Helper()
	var documents []any
	for n := first; n <= last; n++ {
		documents = append(documents, bson.D{{Key: "_id", Value: n}, {Key: "text", Value: fmt.Sprint("event ", n)}})
	}
	if _, err := events.InsertMany(t.Context(), documents); err != nil {
		t.Fatal(err)
	}
}

// read returns the next count changes.
func read(t *testing.T, stream relay.Source, count int) []relay.Change {
	t.Helper()
	all, err := readSome(t.Context(), stream, count)
	if err != nil {
		t.Fatalf("read %d changes: got %d, then %v", count, len(all), err)
	}
	return all
}

func readSome(ctx context.Context, stream relay.Source, count int) ([]relay.Change, error) {
	var all []relay.Change
	for len(all) < count {
		batch, err := stream.Read(ctx)
		if err != nil {
			return all, err
		}
		all = append(all, batch.Changes...)
	}
	return all, nil
}

// wantNumbers wants changes that insert the documents first to last.
func wantNumbers(t *testing.T, changes []relay.Change, first, last int) {
	t.Helper()
	var got, want []int
	for _, change := range changes {
		n, _ := bson.Raw(change.Raw).Lookup("documentKey", "_id").AsInt64OK()
		got = append(got, int(n))
	}
	for n := first; n <= last; n++ {
		want = append(want, n)
	}
	if !slices.Equal(got, want) {
		t.Errorf("changes are of %v, want %d to %d", got, first, last)
	}
}

// fail makes the server's next command of the given name fail with code.
func fail(t *testing.T, client *mongo.Client, command string, code int) {
	t.Helper()
	failing(t, client, bson.D{{Key: "times", Value: 1}}, code, command)
}

// failAlways makes the server's commands of the given names fail with code from now on.
func failAlways(t *testing.T, client *mongo.Client, code int, commands ...string) {
	t.Helper()
	failing(t, client, "alwaysOn", code, commands...)
}

func failing(t *testing.T, client *mongo.Client, mode any, code int, commands ...string) {
	t.Helper()
	err := client.Database("admin").RunCommand(t.Context(), bson.D{
		{Key: "configureFailPoint", Value: "failCommand"},
		{Key: "mode", Value: mode},
		{Key: "data", Value: bson.D{{Key: "failCommands", Value: commands}, {Key: "errorCode", Value: code}}},
	}).Err()
	if err != nil {
		t.Fatal(err)
	}
}

func host(t *testing.T, uri string) string {
	t.Helper()
	u, err := url.Parse(uri)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// TestStream_FromATokenOfAnEmptyReadTheLastChangeIsLookedFor opens streams whose source has
// the last change that was read, and one whose source made none at that time.
func TestStream_FromATokenOfAnEmptyReadTheLastChangeIsLookedFor(t *testing.T) {
	t.Parallel()
	events := collection(t)
	stream := from(t, events, now(t, events))
	insert(t, events, 1, 3)
	last := read(t, stream, 3)[2]
	behind := func(position contract.Position) relay.Point {
		t.Helper()
		if _, err := events.Database().Collection("others").InsertOne(t.Context(), bson.D{}); err != nil {
			t.Fatal(err)
		}
		var idle relay.Point
		testserver.Eventually(t, "an empty read behind it", func() bool {
			batch, err := stream.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			idle = batch.Idle
			return idle.Position > position
		})
		return idle
	}
	first := behind(last.Position)
	if made := (checkpoint.Place{Position: last.Position}).Time(); first.Event != made {
		t.Errorf("the last change before the empty read was at %v, want %v", first.Event, made)
	}
	second := behind(first.Position)
	insert(t, events, 4, 5)
	wantNumbers(t, read(t, from(t, events, changestream.Start{Token: second.Token, Event: second.Event}), 2), 4, 5)
	other := changestream.Start{Token: second.Token, Event: checkpoint.Place{Position: first.Position}.Time()}
	wantLost := func() {
		t.Helper()
		_, err := from(t, events, other).Read(t.Context())
		if halt, ok := errors.AsType[*changestream.HaltError](err); !ok || halt.Reason != changestream.HistoryLost {
			t.Errorf("Read = %v, want that history is lost", err)
		}
	}
	wantLost()
	if err := events.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantLost() // the server closes the stream that looks for it
}

// TestStream_ALastChangeFromBeforeTheOperationLogProvesNothing has the operation log forget
// the last change while the stream has nothing to read.
func TestStream_ALastChangeFromBeforeTheOperationLogProvesNothing(t *testing.T) {
	t.Parallel()
	database := testserver.Connect(t, testserver.Start(t, "--oplog-entries", "60").MongoURI).Database("shop")
	events := database.Collection("events")
	stream := from(t, events, now(t, events))
	insert(t, events, 1, 3)
	last := read(t, stream, 3)[2]
	idle := relay.Point{Position: last.Position}
	for n := range 10 {
		insert(t, database.Collection("others"), 10*n, 10*n+9)
		before := idle.Position
		testserver.Eventually(t, "an empty read behind them", func() bool {
			batch, err := stream.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			idle = batch.Idle
			return idle.Position > before
		})
	}
	insert(t, events, 4, 5)
	wantNumbers(t, read(t, from(t, events, changestream.Start{Token: idle.Token, Event: idle.Event}), 2), 4, 5)
}

// TestStream_WhatIsQuietHasNothingBehindAToken asks behind each change of a transaction,
// which have one time: at the time right behind it, and at one at which others were written.
func TestStream_WhatIsQuietHasNothingBehindAToken(t *testing.T) {
	t.Parallel()
	events := collection(t)
	stream := from(t, events, now(t, events))
	client := events.Database().Client()
	err := client.UseSession(t.Context(), func(ctx context.Context) error {
		_, err := mongo.SessionFromContext(ctx).WithTransaction(ctx, func(ctx context.Context) (any, error) {
			return events.InsertMany(ctx, []bson.D{{{Key: "n", Value: 1}}, {{Key: "n", Value: 2}}, {{Key: "n", Value: 3}}})
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	changes := read(t, stream, 3)
	if _, err := events.Database().Collection("others").InsertOne(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	later, err := changestream.Now(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	right := (checkpoint.Place{Position: changes[2].Position}).Time().Next()
	for _, before := range []checkpoint.ClusterTime{right, later} {
		for i, want := range []bool{false, false, true} {
			if got, err := changestream.Of(events).Quiet(t.Context(), changes[i].Token, before); got != want || err != nil {
				t.Errorf("behind change %d, before %v: got %v, %v, want %v", i+1, before, got, err, want)
			}
		}
	}
}
