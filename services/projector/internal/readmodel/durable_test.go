package readmodel_test

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
)

// Where a majority does not have a batch, nothing of it is durable yet, whatever else the
// server says of it.
func TestStore_WithoutAMajorityNothingBeforeARefusedWriteIsApplied(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	client, err := mongo.Connect(options.Client().ApplyURI(servers.MongoURI).SetAppName(t.Name()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(t.Context()) })
	ours := readmodel.New(client, readmodel.Config{Database: s.db.Name()})
	write := func(n int64, update bson.D) projection.Write {
		return projection.Write{Projection: "p", Collection: "c", ID: "a", Event: readmodeltest.Event("a", n), Update: update}
	}
	writes := []projection.Write{
		write(1, bson.D{{Key: "$set", Value: bson.D{{Key: "list", Value: 1}}}}),
		write(2, bson.D{{Key: "$push", Value: bson.D{{Key: "list", Value: bson.D{{Key: "$each", Value: bson.A{1}}}}}}}), // which is no list
	}
	err = client.Database("admin").RunCommand(t.Context(), bson.D{
		{Key: "configureFailPoint", Value: "failCommand"},
		{Key: "mode", Value: bson.D{{Key: "times", Value: 1}}},
		{Key: "data", Value: bson.D{
			{Key: "failCommands", Value: bson.A{"update"}},
			{Key: "appName", Value: t.Name()},
			{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 64}, {Key: "errmsg", Value: "waiting for replication timed out"}}},
		}},
	}).Err()
	if err != nil {
		t.Fatal(err)
	}
	outcomes, err := ours.Writes.Write(t.Context(), writes)
	if _, rejected := errors.AsType[*delivery.RejectedError](err); err == nil || rejected || outcomes[0] != delivery.Unknown {
		t.Errorf("without a majority: got %v and %v, want that nothing is known", outcomes, err)
	}
	outcomes, err = ours.Writes.Write(t.Context(), writes)
	if rejected, ok := errors.AsType[*delivery.RejectedError](err); !ok || rejected.Index != 1 || outcomes[0] != delivery.Repeated {
		t.Errorf("with one: got %v and %v, want the second write refused", outcomes, err)
	}
}
