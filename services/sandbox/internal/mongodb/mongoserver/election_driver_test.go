package mongoserver_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driverevent "go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"changerelay/services/sandbox/internal/mongodb/engine"
)

// aDay is longer than any test: only a command ends it.
const aDay = 24 * 3600

// admin runs a command on whatever the member is.
func (h *harness) admin(t *testing.T, command bson.D) (bson.Raw, error) {
	t.Helper()
	return h.client.Database("admin").RunCommand(t.Context(), command, options.RunCmd().SetReadPreference(readpref.Nearest())).Raw()
}

func (h *harness) stepDown(t *testing.T) {
	t.Helper()
	_, err := h.admin(t, bson.D{{Key: "replSetStepDown", Value: aDay}, {Key: "force", Value: true}})
	must(t, err)
}

func (h *harness) stepUp(t *testing.T) {
	t.Helper()
	_, err := h.admin(t, bson.D{{Key: "replSetFreeze", Value: 0}})
	must(t, err)
}

func TestElection_AWriteWaitsForTheElectionAfterAStepDown(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("c")
	insertIDs(t, coll, 1, 1)
	before, err := h.admin(t, bson.D{{Key: "hello", Value: 1}})
	must(t, err)
	h.stepDown(t)
	during, err := h.admin(t, bson.D{{Key: "hello", Value: 1}})
	must(t, err)
	if during.Lookup("isWritablePrimary").Boolean() || !during.Lookup("secondary").Boolean() || during.Lookup("primary").Type != 0 {
		t.Errorf("got %s, want a secondary that knows no primary", during)
	}
	written := make(chan error, 1)
	go func() {
		_, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 2}})
		written <- err
	}()
	h.stepUp(t)
	must(t, <-written)
	after, err := h.admin(t, bson.D{{Key: "hello", Value: 1}})
	must(t, err)
	counter := func(hello bson.Raw) int64 { return hello.Lookup("topologyVersion", "counter").Int64() }
	if counter(before) >= counter(during) || counter(during) >= counter(after) {
		t.Errorf("got counters %d, %d, %d, want them to grow", counter(before), counter(during), counter(after))
	}
	if b, a := before.Lookup("electionId").ObjectID(), after.Lookup("electionId").ObjectID(); a.Hex() <= b.Hex() {
		t.Errorf("got election ids %s, then %s, want a greater one", b, a)
	}
}

func TestElection_ASecondaryRefusesWritesAndServesTheReadsThatAllowIt(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	insertIDs(t, h.db.Collection("c"), 1, 1)
	h.stepDown(t)
	direct, err := mongo.Connect(options.Client().ApplyURI(h.server.URI()).SetDirect(true).SetRetryWrites(false))
	must(t, err)
	defer direct.Disconnect(context.WithoutCancel(t.Context()))
	_, err = direct.Database("test").Collection("c").InsertOne(t.Context(), bson.D{})
	if code(err) != 10107 {
		t.Errorf("insert: got %v, want NotWritablePrimary", err)
	}
	if got := ids(t, direct.Database("test").Collection("c"), bson.D{}); len(got) != 1 {
		t.Errorf("find: got %v, want the document", got)
	}
	_, err = direct.Database("test").Collection("c").Aggregate(t.Context(), bson.A{bson.D{{Key: "$out", Value: "d"}}})
	if code(err) != 10107 {
		t.Errorf("$out: got %v, want NotWritablePrimary", err)
	}
	err = direct.Database("test").RunCommand(t.Context(), bson.D{{Key: "find", Value: "c"}, {Key: "$readPreference", Value: bson.D{{Key: "mode", Value: "primary"}}}}).Err()
	if code(err) != 13435 {
		t.Errorf("find on the primary: got %v, want NotPrimaryNoSecondaryOk", err)
	}
	for what, command := range map[string]bson.D{
		"a second step-down": {{Key: "replSetStepDown", Value: 1}, {Key: "force", Value: true}},
	} {
		if _, err := h.admin(t, command); code(err) != 10107 {
			t.Errorf("%s: got %v, want NotWritablePrimary", what, err)
		}
	}
	h.stepUp(t)
	if _, err := h.admin(t, bson.D{{Key: "replSetFreeze", Value: 1}}); code(err) != 95 {
		t.Errorf("freeze of the primary: got %v, want NotSecondary", err)
	}
	if _, err := h.admin(t, bson.D{{Key: "replSetStepDown", Value: 1}}); code(err) != 262 {
		t.Errorf("step-down that is not forced: got %v, want ExceededTimeLimit", err)
	}
}

func TestElection_AMemberStandsForElectionByItselfWhenItsTimeHasCome(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	_, err := h.admin(t, bson.D{{Key: "replSetStepDown", Value: 1}, {Key: "force", Value: true}})
	must(t, err)
	insertIDs(t, h.db.Collection("c"), 1, 1)
}

func TestElection_MonitorsAreToldOfAStepDownAtOnce(t *testing.T) {
	t.Parallel()
	// It is disconnected after the server's end: the driver waits for its monitor,
	// and that for the next change.
	var client *mongo.Client
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) })
	h := start(t, engine.Config{})
	var heartbeats atomic.Int64
	lost, found := make(chan struct{}, 100), make(chan struct{}, 100)
	var err error
	client, err = mongo.Connect(options.Client().ApplyURI(h.server.URI()).SetHeartbeatInterval(time.Hour).
		SetServerMonitor(&driverevent.ServerMonitor{
			ServerHeartbeatSucceeded: func(*driverevent.ServerHeartbeatSucceededEvent) { heartbeats.Add(1) },
			ServerDescriptionChanged: func(e *driverevent.ServerDescriptionChangedEvent) {
				switch e.NewDescription.Kind {
				case "RSPrimary":
					found <- struct{}{}
				case "RSSecondary":
					lost <- struct{}{}
				}
			},
		}))
	must(t, err)
	<-found
	h.stepDown(t)
	<-lost
	h.stepUp(t)
	<-found
}

func TestElection_StreamsAndCursorsGoOnAfterAStepDown(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("c")
	insertIDs(t, coll, 1, 5)
	stream, err := coll.Watch(t.Context(), mongo.Pipeline{})
	must(t, err)
	defer stream.Close(context.WithoutCancel(t.Context()))
	cursor, err := coll.Find(t.Context(), bson.D{}, options.Find().SetBatchSize(2))
	must(t, err)
	h.stepDown(t)
	var docs []bson.Raw
	must(t, cursor.All(t.Context(), &docs))
	if len(docs) != 5 {
		t.Errorf("got %d documents of the cursor, want 5", len(docs))
	}
	h.stepUp(t)
	insertIDs(t, coll, 6, 6)
	if !stream.Next(t.Context()) {
		t.Fatalf("got %v, want the event", stream.Err())
	}
	if got := stream.Current.Lookup("documentKey", "_id").AsInt64(); got != 6 {
		t.Errorf("got the event of %d, want 6", got)
	}
}

func TestElection_AStepDownAbortsTransactionsAndFreesWhoWaitsForThem(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("c")
	insertIDs(t, coll, 1, 1)
	session, err := h.client.StartSession()
	must(t, err)
	defer session.EndSession(context.WithoutCancel(t.Context()))
	must(t, session.StartTransaction())
	inside := mongo.NewSessionContext(t.Context(), session)
	_, err = coll.UpdateByID(inside, 1, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: 2}}}})
	must(t, err)
	waiting := make(chan error, 1)
	go func() {
		_, err := coll.UpdateByID(t.Context(), 1, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: 3}}}})
		waiting <- err
	}()
	h.stepDown(t)
	h.stepUp(t)
	must(t, <-waiting)
	if err := session.CommitTransaction(t.Context()); code(err) != 251 {
		t.Errorf("commit: got %v, want NoSuchTransaction", err)
	}
	if got := ids(t, coll, bson.D{{Key: "n", Value: 3}}); len(got) != 1 {
		t.Errorf("got %v, want the update that waited", got)
	}
}
