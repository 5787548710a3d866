package mongoserver_test

import (
	"context"
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/sandbox/internal/mongodb/engine"
)

func TestLabels_AWriteConcernErrorInATransactionIsNotTransient(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	insertIDs(t, h.db.Collection("c"), 1, 1)
	must(t, h.client.Database("admin").RunCommand(t.Context(), bson.D{
		{Key: "configureFailPoint", Value: "failCommand"},
		{Key: "mode", Value: bson.D{{Key: "times", Value: 1}}},
		{Key: "data", Value: bson.D{
			{Key: "failCommands", Value: bson.A{"insert"}},
			{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 91}, {Key: "errmsg", Value: "shutting down"}}},
		}},
	}).Err())
	must(t, h.client.UseSession(t.Context(), func(ctx context.Context) error {
		session := mongo.SessionFromContext(ctx)
		must(t, session.StartTransaction())
		_, err := h.db.Collection("c").InsertOne(ctx, bson.D{{Key: "_id", Value: 2}})
		var failure mongo.ServerError
		if !errors.As(err, &failure) || failure.HasErrorLabel("TransientTransactionError") {
			t.Errorf("got %v, want a write concern error without the label", err)
		}
		return session.AbortTransaction(ctx)
	}))
}
