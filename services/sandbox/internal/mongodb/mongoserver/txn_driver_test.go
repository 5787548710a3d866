package mongoserver_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/sandbox/internal/mongodb/engine"
)

// TestTransaction_TransfersKeepTheSum moves amounts between accounts in transactions side
// by side, each retried until it is done, and reads the sum meanwhile.
func TestTransaction_TransfersKeepTheSum(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	const accounts, workers, transfers = 6, 4, 40
	coll := h.db.Collection("accounts")
	for i := range accounts {
		_, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}, {Key: "amount", Value: 100}})
		must(t, err)
	}
	var all sync.WaitGroup
	for w := range workers {
		dice := rand.New(rand.NewPCG(uint64(w), 7))
		all.Go(func() {
			for range transfers {
				from, to := dice.IntN(accounts), dice.IntN(accounts)
				if err := transfer(t.Context(), h.client, coll, from, to, dice.IntN(20)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		if got := sumInTransaction(t, h.client, coll); got != 100*accounts {
			t.Fatalf("got sum %d, want %d", got, 100*accounts)
		}
	}
}

func transfer(ctx context.Context, client *mongo.Client, coll *mongo.Collection, from, to, amount int) error {
	session, err := client.StartSession()
	if err != nil {
		return err
	}
	defer session.EndSession(ctx)
	_, err = session.WithTransaction(ctx, func(ctx context.Context) (any, error) {
		for _, move := range []struct{ account, amount int }{{from, -amount}, {to, amount}} {
			_, err := coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: move.account}},
				bson.D{{Key: "$inc", Value: bson.D{{Key: "amount", Value: move.amount}}}})
			if err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	return err
}

func sumInTransaction(t *testing.T, client *mongo.Client, coll *mongo.Collection) int {
	t.Helper()
	session, err := client.StartSession()
	must(t, err)
	defer session.EndSession(t.Context())
	sum, err := session.WithTransaction(t.Context(), func(ctx context.Context) (any, error) {
		cursor, err := coll.Find(ctx, bson.D{}, options.Find().SetBatchSize(2))
		if err != nil {
			return 0, err
		}
		var all []struct{ Amount int }
		if err := cursor.All(ctx, &all); err != nil {
			return 0, err
		}
		sum := 0
		for _, account := range all {
			sum += account.Amount
		}
		return sum, nil
	})
	must(t, err)
	return sum.(int)
}

// failCommand arms the fail point.
func failCommand(t *testing.T, h *harness, mode any, data ...bson.E) {
	t.Helper()
	must(t, h.client.Database("admin").RunCommand(t.Context(), bson.D{
		{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: mode}, {Key: "data", Value: bson.D(data)},
	}).Err())
}

func TestTransaction_ARetriedWriteIsDoneOnce(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]bson.D{
		"after a lost connection": {{Key: "closeConnection", Value: true}},
		"after a step-down":       {{Key: "errorCode", Value: 189}},
		"after a shutdown that was reported with the write done": {{Key: "writeConcernError", Value: bson.D{
			{Key: "code", Value: 91}, {Key: "errmsg", Value: "shutting down"},
		}}, {Key: "errorLabels", Value: bson.A{"RetryableWriteError"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, engine.Config{})
			coll := h.db.Collection("counters")
			_, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: 0}})
			must(t, err)
			data := append(bson.D{{Key: "failCommands", Value: bson.A{"update"}}}, fault...)
			failCommand(t, h, bson.D{{Key: "times", Value: 1}}, data...)
			_, err = coll.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}})
			must(t, err)
			var counter struct{ N int }
			must(t, coll.FindOne(t.Context(), bson.D{{Key: "_id", Value: 1}}).Decode(&counter))
			if counter.N != 1 {
				t.Errorf("got n %d, want 1", counter.N)
			}
		})
	}
}

func TestTransaction_FailPointModes(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	other := h.connect(t, options.Client().SetAppName("other").SetRetryReads(false))
	quiet := h.connect(t, options.Client().SetRetryReads(false))
	count := func(client *mongo.Client) bool {
		_, err := client.Database("test").Collection("c").EstimatedDocumentCount(t.Context())
		var failure mongo.CommandError
		if err != nil && !errors.As(err, &failure) {
			t.Fatal(err)
		}
		return err != nil
	}
	outcomes := func(client *mongo.Client, n int) string {
		text := ""
		for range n {
			text += map[bool]string{true: "x", false: "."}[count(client)]
		}
		return text
	}
	fails := bson.E{Key: "failCommands", Value: bson.A{"count"}}
	code := bson.E{Key: "errorCode", Value: 2}
	for _, c := range []struct {
		name   string
		mode   any
		data   []bson.E
		client *mongo.Client
		want   string
	}{
		{"twice", bson.D{{Key: "times", Value: 2}}, []bson.E{fails, code}, quiet, "xx.."},
		{"after two", bson.D{{Key: "skip", Value: 2}}, []bson.E{fails, code}, quiet, "..xx"},
		{"always", "alwaysOn", []bson.E{fails, code}, quiet, "xxxx"},
		{"off", "off", nil, quiet, "...."},
		{"another application", "alwaysOn", []bson.E{fails, code, {Key: "appName", Value: "other"}}, quiet, "...."},
		{"this application", "alwaysOn", []bson.E{fails, code, {Key: "appName", Value: "other"}}, other, "xxxx"},
		{"another command", "alwaysOn", []bson.E{{Key: "failCommands", Value: bson.A{"insert"}}, code}, quiet, "...."},
		{"no command", "alwaysOn", []bson.E{code}, quiet, "...."},
		{"every command of a collection", "alwaysOn", []bson.E{{Key: "failAllCommands", Value: true}, {Key: "namespace", Value: "test.c"}, code}, quiet, "xxxx"},
		{"another collection", "alwaysOn", []bson.E{fails, {Key: "namespace", Value: "test.d"}, code}, quiet, "...."},
	} {
		failCommand(t, h, c.mode, c.data...)
		if got := outcomes(c.client, 4); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestTransaction_ABlockedWriteEndsAtItsTimeLimit(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("things")
	_, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}})
	must(t, err)
	session, err := h.client.StartSession()
	must(t, err)
	defer session.EndSession(t.Context())
	must(t, session.StartTransaction())
	inside := mongo.NewSessionContext(t.Context(), session)
	_, err = coll.UpdateOne(inside, bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: 1}}}})
	must(t, err)
	err = h.db.RunCommand(t.Context(), bson.D{
		{Key: "update", Value: "things"},
		{Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "u", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: 2}}}}}}}},
		{Key: "maxTimeMS", Value: 20},
	}).Err()
	var failure mongo.ServerError
	if !errors.As(err, &failure) || !failure.HasErrorCode(50) {
		t.Errorf("got %v, want code 50", err)
	}
	must(t, session.CommitTransaction(t.Context()))
}

// TestTransaction_AnErrorEndsTheTransaction shows that nothing of a failed transaction is
// left, and that the session can begin another one.
func TestTransaction_AnErrorEndsTheTransaction(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("things")
	_, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}})
	must(t, err)
	session, err := h.client.StartSession()
	must(t, err)
	defer session.EndSession(t.Context())
	for round := range 2 {
		must(t, session.StartTransaction())
		inside := mongo.NewSessionContext(t.Context(), session)
		_, err = coll.InsertOne(inside, bson.D{{Key: "_id", Value: fmt.Sprint("in round ", round)}})
		must(t, err)
		if _, err = coll.InsertOne(inside, bson.D{{Key: "_id", Value: 1}}); !mongo.IsDuplicateKeyError(err) {
			t.Errorf("round %d: got %v, want a duplicate key", round, err)
		}
		var failure mongo.CommandError
		if err := session.CommitTransaction(t.Context()); !errors.As(err, &failure) || failure.Code != 251 {
			t.Errorf("round %d: commit: got %v, want code 251", round, err)
		}
		_ = session.AbortTransaction(t.Context()) // the server has done so
	}
	if n, err := coll.CountDocuments(t.Context(), bson.D{}); n != 1 || err != nil {
		t.Errorf("got %d documents and %v, want 1", n, err)
	}
}

func TestTransaction_ATransactionsEventsCarryItsSession(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("things")
	stream, err := coll.Watch(t.Context(), mongo.Pipeline{}, options.ChangeStream().SetMaxAwaitTime(time.Second))
	must(t, err)
	defer stream.Close(context.Background())
	session, err := h.client.StartSession()
	must(t, err)
	defer session.EndSession(t.Context())
	_, err = session.WithTransaction(t.Context(), func(ctx context.Context) (any, error) {
		return coll.InsertMany(ctx, []any{bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "_id", Value: 2}}})
	})
	must(t, err)
	var times []bson.Timestamp
	for range 2 {
		if !stream.Next(t.Context()) {
			t.Fatal(stream.Err())
		}
		var event struct {
			ClusterTime bson.Timestamp `bson:"clusterTime"`
			TxnNumber   *int64         `bson:"txnNumber"`
			LSID        bson.Raw       `bson:"lsid"`
		}
		must(t, stream.Decode(&event))
		if event.TxnNumber == nil || !event.LSID.Lookup("id").Equal(bson.Raw(session.ID()).Lookup("id")) {
			t.Errorf("got event %s, want it to carry the session", stream.Current)
		}
		times = append(times, event.ClusterTime)
	}
	if times[0] != times[1] {
		t.Errorf("got cluster times %v, want one", times)
	}
}

// TestTransaction_AStreamIsResumedAfterErrorsThatTheServerLabels makes getMores fail with
// every code after which clients of this server version resume by label.
func TestTransaction_AStreamIsResumedAfterErrorsThatTheServerLabels(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("things")
	stream, err := coll.Watch(t.Context(), mongo.Pipeline{})
	must(t, err)
	defer stream.Close(context.Background())
	for i, code := range []int32{6, 7, 63, 89, 91, 133, 150, 189, 234, 262, 9001, 10107, 11600, 11602, 13388, 13435, 13436} {
		must(t, h.client.Database("admin").RunCommand(t.Context(), bson.D{
			{Key: "configureFailPoint", Value: "failGetMoreAfterCursorCheckout"},
			{Key: "mode", Value: bson.D{{Key: "times", Value: 1}}},
			{Key: "data", Value: bson.D{{Key: "errorCode", Value: code}, {Key: "closeConnection", Value: false}}},
		}).Err())
		_, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}})
		must(t, err)
		if !stream.Next(t.Context()) {
			t.Fatalf("code %d: %v", code, stream.Err())
		}
		if got := stream.Current.Lookup("documentKey", "_id").AsInt64(); got != int64(i) {
			t.Errorf("code %d: got event of %d, want %d", code, got, i)
		}
	}
}

func TestTransaction_RetryableWritesThatFailBeforeOrAfterTheyAreDone(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]bson.D{
		"after":                       {},
		"before, with the connection": {{Key: "failBeforeCommitExceptionCode", Value: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, engine.Config{})
			coll := h.db.Collection("things")
			_, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: 0}})
			must(t, err)
			must(t, h.client.Database("admin").RunCommand(t.Context(), bson.D{
				{Key: "configureFailPoint", Value: "onPrimaryTransactionalWrite"},
				{Key: "mode", Value: bson.D{{Key: "times", Value: 1}}},
				{Key: "data", Value: data},
			}).Err())
			var after struct{ N int }
			must(t, coll.FindOneAndUpdate(t.Context(), bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}},
				options.FindOneAndUpdate().SetReturnDocument(options.After)).Decode(&after))
			if after.N != 1 {
				t.Errorf("got n %d, want 1", after.N)
			}
		})
	}
}
