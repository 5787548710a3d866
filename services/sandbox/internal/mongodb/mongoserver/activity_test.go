package mongoserver_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
)

func TestActivity_TheReportShowsCursorsAndTransactions(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	things := h.connect(t, options.Client().SetAppName("shop")).Database("test").Collection("things")
	_, err := things.InsertMany(t.Context(), []any{bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "_id", Value: 2}}, bson.D{{Key: "_id", Value: 3}}})
	must(t, err)
	stream, err := things.Watch(t.Context(), mongo.Pipeline{})
	must(t, err)
	defer stream.Close(t.Context())
	cursor, err := things.Find(t.Context(), bson.D{}, options.Find().SetBatchSize(2))
	must(t, err)
	defer cursor.Close(t.Context())
	session, err := things.Database().Client().StartSession()
	must(t, err)
	defer session.EndSession(t.Context())
	must(t, session.StartTransaction())
	inside := mongo.NewSessionContext(t.Context(), session)
	_, err = things.InsertOne(inside, bson.D{{Key: "_id", Value: 4}})
	must(t, err)

	report := h.server.Report()
	want := []command.CursorReport{
		{Namespace: "test.things", ChangeStream: true, Application: "shop"}, {Namespace: "test.things", Application: "shop"},
	}
	for i := range report.OpenCursors {
		report.OpenCursors[i].IdleSeconds, report.OpenCursors[i].AgeSeconds = 0, 0
	}
	if !slices.Equal(report.OpenCursors, want) {
		t.Errorf("got cursors %+v, want %+v", report.OpenCursors, want)
	}
	if txns := report.Transactions; len(txns) != 1 || txns[0].Writes != 1 || !slices.Equal(txns[0].Collections, []string{"test.things"}) || len(txns[0].Session) != 32 {
		t.Errorf("got transactions %+v, want one with a write to test.things", txns)
	}
	must(t, session.AbortTransaction(t.Context()))
	if txns := h.server.Report().Transactions; len(txns) != 0 {
		t.Errorf("got transactions %+v after the abort, want none", txns)
	}
}

// A cursor that is read again and again is never idle for long, and its age tells who left it.
func TestActivity_TheReportSaysHowOldCursorsAre(t *testing.T) {
	t.Parallel()
	later := atomic.Int64{}
	h := start(t, engine.Config{Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }})
	things := h.connect(t, options.Client()).Database("test").Collection("things")
	stream, err := things.Watch(t.Context(), mongo.Pipeline{})
	must(t, err)
	defer stream.Close(t.Context())
	later.Store(int64(time.Hour))
	if cursors := h.server.Report().OpenCursors; len(cursors) != 1 || cursors[0].AgeSeconds < 3600 {
		t.Errorf("got cursors %+v, want one that was opened an hour ago", cursors)
	}
}

// A client that died within a transaction holds what it has written until somebody
// ends its session, or the transaction is too old.
func TestCurrentOp_ShowsIdleTransactionsAndKillSessionsEndsThem(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	things := h.connect(t, options.Client().SetAppName("shop")).Database("test").Collection("things")
	_, err := things.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}})
	must(t, err)
	session, err := things.Database().Client().StartSession()
	must(t, err)
	defer session.EndSession(t.Context())
	must(t, session.StartTransaction())
	inside := mongo.NewSessionContext(t.Context(), session)
	_, err = things.UpdateOne(inside, bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}})
	must(t, err)

	type operation struct {
		Type        string
		AppName     string `bson:"appName"`
		Lsid        struct{ ID bson.Binary }
		Transaction struct {
			TimeInactiveMicros *int64 `bson:"timeInactiveMicros"`
		}
	}
	admin := h.client.Database("admin")
	idle := func(options bson.D) (found []operation) {
		cursor, err := admin.Aggregate(t.Context(), mongo.Pipeline{{{Key: "$currentOp", Value: options}}, {{Key: "$match", Value: bson.D{{Key: "type", Value: "idleSession"}}}}})
		must(t, err)
		must(t, cursor.All(t.Context(), &found))
		return found
	}
	found := idle(bson.D{})
	if len(found) != 1 || found[0].AppName != "shop" || found[0].Transaction.TimeInactiveMicros == nil {
		t.Fatalf("got %+v, want the transaction of the shop", found)
	}
	if left := idle(bson.D{{Key: "idleSessions", Value: false}}); len(left) != 0 {
		t.Errorf("without idle sessions: got %+v", left)
	}
	must(t, admin.RunCommand(t.Context(), bson.D{{Key: "killSessions", Value: bson.A{bson.D{{Key: "id", Value: found[0].Lsid.ID}}}}}).Err())
	if left := idle(bson.D{}); len(left) != 0 {
		t.Errorf("killed: got %+v, want none", left)
	}
	inOther := h.client.UseSession(t.Context(), func(ctx context.Context) error {
		other := mongo.SessionFromContext(ctx)
		if err := other.StartTransaction(); err != nil {
			return err
		}
		if _, err := h.client.Database("test").Collection("things").UpdateOne(ctx, bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 2}}}}); err != nil {
			return err
		}
		return other.CommitTransaction(ctx)
	})
	must(t, inOther)
	if err := session.CommitTransaction(t.Context()); code(err) != 251 {
		t.Errorf("the killed transaction: got %v, want code 251", err)
	}
}

func TestCurrentOp_ShowsOthersTransactionsToWhoMaySeeThem(t *testing.T) {
	t.Parallel()
	h := guarded(t)
	root := h.as(t, "root", "root's")
	user, other := h.user(t, "u", role("readWrite", "shop")), h.user(t, "v", role("readWrite", "shop"))
	session, err := user.StartSession()
	must(t, err)
	defer session.EndSession(t.Context())
	must(t, session.StartTransaction())
	_, err = user.Database("shop").Collection("events").InsertOne(mongo.NewSessionContext(t.Context(), session), bson.D{})
	must(t, err)
	for _, tt := range []struct {
		name   string
		client *mongo.Client
		all    bool
		want   int // -1 for refused
	}{
		{"the user's own", user, false, 1},
		{"another user's", other, false, 0},
		{"all, for any user", user, true, -1},
		{"all, for who may", root, true, 1},
		{"root's own", root, false, 0},
	} {
		cursor, err := tt.client.Database("admin").Aggregate(t.Context(), mongo.Pipeline{
			{{Key: "$currentOp", Value: bson.D{{Key: "allUsers", Value: tt.all}}}}, {{Key: "$match", Value: bson.D{{Key: "type", Value: "idleSession"}}}},
		})
		got := -1
		if err == nil {
			var found []bson.Raw
			must(t, cursor.All(t.Context(), &found))
			got = len(found)
		} else if code(err) != 13 {
			t.Errorf("%s: got %v, want code 13", tt.name, err)
		}
		if got != tt.want {
			t.Errorf("%s: got %d transactions, want %d", tt.name, got, tt.want)
		}
	}
}
