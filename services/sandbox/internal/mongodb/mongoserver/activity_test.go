package mongoserver_test

import (
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
)

func TestTheReportShowsCursorsAndTransactions(t *testing.T) {
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
		report.OpenCursors[i].IdleSeconds = 0
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
