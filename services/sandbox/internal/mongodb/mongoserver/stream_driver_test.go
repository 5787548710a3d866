package mongoserver_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/sandbox/internal/mongodb/engine"
)

// TestStream_EveryInsertOfManyWritersIsSeenOnceAndInOrder has writers insert side by
// side while the stream's connection is cut again and again.
func TestStream_EveryInsertOfManyWritersIsSeenOnceAndInOrder(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	const writers, each = 8, 400
	watcher := h.connect(t, options.Client().SetAppName("watcher"))
	coll := watcher.Database("test").Collection("things")
	stream, err := coll.Watch(t.Context(), mongo.Pipeline{}, options.ChangeStream().SetBatchSize(50).SetMaxAwaitTime(time.Second))
	must(t, err)
	defer stream.Close(context.Background())
	must(t, h.client.Database("admin").RunCommand(t.Context(), bson.D{
		{Key: "configureFailPoint", Value: "failCommand"},
		{Key: "mode", Value: bson.D{{Key: "times", Value: 5}}},
		{Key: "data", Value: bson.D{
			{Key: "failCommands", Value: bson.A{"getMore"}}, {Key: "closeConnection", Value: true}, {Key: "appName", Value: "watcher"},
		}},
	}).Err())
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := range each {
				_, err := h.db.Collection("things").InsertOne(t.Context(), bson.D{{Key: "writer", Value: w}, {Key: "n", Value: n}})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	next := make([]int, writers)
	for range writers * each {
		if !stream.Next(t.Context()) {
			t.Fatal(stream.Err())
		}
		var event struct{ FullDocument struct{ Writer, N int } }
		must(t, stream.Decode(&event))
		if w := event.FullDocument.Writer; event.FullDocument.N != next[w] {
			t.Fatalf("writer %d: got insert %d, want %d", w, event.FullDocument.N, next[w])
		}
		next[event.FullDocument.Writer]++
	}
	all.Wait()
}

// TestStream_LargeEventsAreResumedWhereABatchEnded has events of which two do not fit
// into one batch.
func TestStream_LargeEventsAreResumedWhereABatchEnded(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("large")
	stream, err := coll.Watch(t.Context(), mongo.Pipeline{})
	must(t, err)
	for i := range 4 {
		_, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}, {Key: "text", Value: strings.Repeat("x", 9<<20)}})
		must(t, err)
	}
	for i := range int32(4) {
		if !stream.Next(t.Context()) {
			t.Fatal(stream.Err())
		}
		if got := stream.Current.Lookup("documentKey", "_id").Int32(); got != i {
			t.Fatalf("got event of %d, want %d", got, i)
		}
		// The place after the batch must not be behind events that were not given.
		token := stream.ResumeToken()
		must(t, stream.Close(t.Context()))
		stream, err = coll.Watch(t.Context(), mongo.Pipeline{}, options.ChangeStream().SetResumeAfter(token))
		must(t, err)
	}
	must(t, stream.Close(t.Context()))
}

func TestStream_AnEventTooLargeForAReplyEndsTheStream(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("large")
	_, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}, {Key: "text", Value: strings.Repeat("x", 10<<20)}})
	must(t, err)
	stream, err := coll.Watch(t.Context(), mongo.Pipeline{}, options.ChangeStream().SetFullDocument(options.UpdateLookup))
	must(t, err)
	defer stream.Close(context.Background())
	_, err = coll.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "text", Value: strings.Repeat("y", 10<<20)}}}})
	must(t, err)
	if stream.Next(t.Context()) {
		t.Fatal("got an event, want an error")
	}
	var failure mongo.CommandError
	if err := stream.Err(); !errors.As(err, &failure) || failure.Code != 10334 {
		t.Errorf("got %v, want code 10334", err)
	}
}

// slowJournal keeps nothing. Once it is held, a commit waits until it is freed.
type slowJournal struct {
	engine.Journal
	appended     atomic.Int64
	held         atomic.Bool
	waits, freed chan struct{}
}

func (j *slowJournal) Append([]byte) int64 { return j.appended.Add(1) }
func (j *slowJournal) Logged() int64       { return 0 }

func (j *slowJournal) Commit(int64) error {
	if j.held.Load() {
		j.waits <- struct{}{}
		<-j.freed
	}
	return nil
}

// The present document may have changes whose events wait for the journal still.
func TestStream_ALookupWaitsForTheJournal(t *testing.T) {
	t.Parallel()
	lookup := options.ChangeStream().SetFullDocument(options.UpdateLookup)
	for name, next := range map[string]func(open *mongo.ChangeStream, coll *mongo.Collection) (*mongo.ChangeStream, error){
		"by a getMore": func(open *mongo.ChangeStream, _ *mongo.Collection) (*mongo.ChangeStream, error) { return open, nil },
		"by an aggregate": func(open *mongo.ChangeStream, coll *mongo.Collection) (*mongo.ChangeStream, error) {
			return coll.Watch(t.Context(), mongo.Pipeline{}, lookup, options.ChangeStream().SetResumeAfter(open.ResumeToken()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := &slowJournal{waits: make(chan struct{}, 10), freed: make(chan struct{})}
			e, err := engine.Recover(engine.Config{NoopInterval: time.Hour}, func(func([]byte) error) (engine.Journal, error) { return j, nil })
			must(t, err)
			h := startStoppable(t, e)
			coll := h.connect(t).Database("test").Collection("things")
			_, err = coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}})
			must(t, err)
			open, err := coll.Watch(t.Context(), mongo.Pipeline{}, lookup)
			must(t, err)
			defer open.Close(context.Background())
			update := func(n int) error {
				_, err := coll.UpdateByID(t.Context(), 1, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: n}}}})
				return err
			}
			must(t, update(1))
			j.held.Store(true)
			updated, shown := make(chan error, 1), make(chan error, 1)
			go func() { updated <- update(2) }()
			<-j.waits
			event := ""
			go func() {
				stream, err := next(open, coll)
				if err == nil && stream.Next(t.Context()) {
					event = stream.Current.Lookup("fullDocument").String()
				}
				shown <- err
			}()
			select {
			case <-j.waits:
			case err := <-shown:
				t.Errorf("got %s and error %v before the journal had it", event, err)
				shown <- err
			}
			close(j.freed)
			must(t, errors.Join(<-updated, <-shown))
			if want := `{"_id": {"$numberInt":"1"},"n": {"$numberInt":"2"}}`; event != want {
				t.Errorf("got %s, want %s", event, want)
			}
		})
	}
}

func TestStream_AnIdleStreamsTokenMovesPastOtherWrites(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	stream, err := h.db.Collection("quiet").Watch(t.Context(), mongo.Pipeline{}, options.ChangeStream().SetMaxAwaitTime(10*time.Millisecond))
	must(t, err)
	defer stream.Close(context.Background())
	before := stream.ResumeToken().Lookup("_data").StringValue()
	_, err = h.db.Collection("loud").InsertOne(t.Context(), bson.D{})
	must(t, err)
	for stream.ResumeToken().Lookup("_data").StringValue() <= before {
		if stream.TryNext(t.Context()) || stream.Err() != nil {
			t.Fatalf("got event %s and error %v, want neither", stream.Current, stream.Err())
		}
	}
}

// getMoreOn sends a raw GetMore that waits for long.
func getMoreOn(ns string, id int64) message {
	body, err := bson.Marshal(bson.D{
		{Key: "getMore", Value: id}, {Key: "collection", Value: ns}, {Key: "maxTimeMS", Value: 60_000}, {Key: "$db", Value: "test"},
	})
	if err != nil {
		panic(err)
	}
	return message{body: body}
}

func openStream(t *testing.T, client *rawClient) int64 {
	t.Helper()
	body, err := bson.Marshal(bson.D{
		{Key: "aggregate", Value: "things"},
		{Key: "pipeline", Value: bson.A{bson.D{{Key: "$changeStream", Value: bson.D{}}}}},
		{Key: "cursor", Value: bson.D{}},
		{Key: "$db", Value: "test"},
	})
	must(t, err)
	reply, err := client.roundTrip(message{body: body}, stepLimit)
	must(t, err)
	return reply.Lookup("cursor", "id").Int64()
}

func codeOf(t *testing.T, reply bson.Raw, err error) int32 {
	t.Helper()
	must(t, err)
	code, _ := reply.Lookup("code").Int32OK()
	return code
}

// TestStream_KillingACursorEndsTheGetMoreThatWaits also shows that a second GetMore on
// a busy cursor is refused.
func TestStream_KillingACursorEndsTheGetMoreThatWaits(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	address := h.server.Addr().String()
	first, second := newRawClient(t, address), newRawClient(t, address)
	id := openStream(t, first)
	waiting := make(chan int32, 1)
	go func() {
		code := int32(143)
		for code == 143 { // busy may have the cursor at that moment
			reply, err := first.roundTrip(getMoreOn("things", id), stepLimit)
			code = codeOf(t, reply, err)
		}
		waiting <- code
	}()
	busy := func() bool {
		body, err := bson.Marshal(bson.D{
			{Key: "getMore", Value: id}, {Key: "collection", Value: "things"}, {Key: "maxTimeMS", Value: 1}, {Key: "$db", Value: "test"},
		})
		must(t, err)
		reply, err := second.roundTrip(message{body: body}, stepLimit)
		return codeOf(t, reply, err) == 143
	}
	for !busy() {
		// The waiting GetMore has not come yet.
	}
	must(t, h.db.RunCommand(t.Context(), bson.D{{Key: "killCursors", Value: "things"}, {Key: "cursors", Value: bson.A{id}}}).Err())
	if got := <-waiting; got != 237 {
		t.Errorf("got code %d, want 237", got)
	}
	reply, err := second.roundTrip(getMoreOn("things", id), stepLimit)
	if got := codeOf(t, reply, err); got != 43 {
		t.Errorf("afterwards: got code %d, want 43", got)
	}
}

func TestStream_AClientThatGoesAwayGivesItsCursorFree(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	address := h.server.Addr().String()
	first, second := newRawClient(t, address), newRawClient(t, address)
	id := openStream(t, first)
	_, err := first.nc.Write(getMoreOn("things", id).encode())
	must(t, err)
	first.close()
	body, err := bson.Marshal(bson.D{
		{Key: "getMore", Value: id}, {Key: "collection", Value: "things"}, {Key: "maxTimeMS", Value: 1}, {Key: "$db", Value: "test"},
	})
	must(t, err)
	for {
		reply, err := second.roundTrip(message{body: body}, stepLimit)
		if code := codeOf(t, reply, err); code == 0 {
			return
		} else if code != 143 {
			t.Fatalf("got code %d, want 143 until the cursor is free", code)
		}
	}
}

func TestStream_TheServersEndIsTheStreamsEnd(t *testing.T) {
	t.Parallel()
	e := engine.New(engine.Config{})
	h := startStoppable(t, e)
	client := newRawClient(t, h.server.Addr().String())
	id := openStream(t, client)
	waiting := make(chan error, 1)
	go func() {
		_, err := client.roundTrip(getMoreOn("things", id), stepLimit)
		waiting <- err
	}()
	h.stop()
	var failure net.Error
	if err := <-waiting; !errors.Is(err, errHungUp) && !errors.As(err, &failure) {
		t.Errorf("got %v, want the connection closed", err)
	}
}

// exhaustHello is a hello that asks for one reply after another, from what the
// server says now.
func exhaustHello(t *testing.T, client *rawClient, await time.Duration) message {
	t.Helper()
	hello := func(more ...bson.E) message {
		body, err := bson.Marshal(append(bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}}, more...))
		must(t, err)
		return message{body: body}
	}
	reply, err := client.roundTrip(hello(), stepLimit)
	must(t, err)
	streamed := hello(
		bson.E{Key: "topologyVersion", Value: reply.Lookup("topologyVersion")}, bson.E{Key: "maxAwaitTimeMS", Value: await.Milliseconds()},
	)
	streamed.flags = 1 << 16
	return streamed
}

func TestStream_ExhaustHello(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	client := newRawClient(t, h.server.Addr().String())
	got, err := client.stream(exhaustHello(t, client, 5*time.Millisecond), 4, stepLimit)
	must(t, err)
	for i, reply := range got {
		if !reply.more || i > 0 && reply.responseTo != got[i-1].id {
			t.Errorf("reply %d: got %+v, want more to come in answer to the one before", i, reply)
		}
		if writable, _ := reply.body.Lookup("isWritablePrimary").BooleanOK(); !writable {
			t.Errorf("reply %d: got %s, want a writable primary", i, reply.body)
		}
	}
}

// Each reply is about what has changed since the one before, not since the
// request; or a stream would never pause again after an election.
func TestStream_AnExhaustHelloWaitsForTheNextChange(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	client := newRawClient(t, h.server.Addr().String())
	hello := exhaustHello(t, client, time.Hour)
	h.stepDown(t)
	got, err := client.stream(hello, 1, stepLimit)
	must(t, err)
	if writable, _ := got[0].body.Lookup("isWritablePrimary").BooleanOK(); writable {
		t.Fatalf("after the step-down: got %s, want no primary", got[0].body)
	}
	h.stepUp(t)
	next, err := client.readReply()
	must(t, err)
	if writable, _ := next.body.Lookup("isWritablePrimary").BooleanOK(); !writable {
		t.Errorf("the next reply: got %s, want the primary again", next.body)
	}
}
