package mongostate_test

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/testserver"
)

// TestClaim_ARetiredCheckpointStaysSo claims one that a repartition has retired since
// the claimant has looked, as who may make it.
func TestClaim_ARetiredCheckpointStaysSo(t *testing.T) {
	t.Parallel()
	name := testserver.Name(t)
	checkpoints := mongostate.New(testserver.Mongo(t), name).Checkpoints()
	documents := testserver.Mongo(t).Database(name).Collection("resume_tokens")
	if _, err := documents.InsertOne(t.Context(), bson.D{{Key: "_id", Value: "orders"}, {Key: "term", Value: int64(7)}, {Key: "retired", Value: true}}); err != nil {
		t.Fatal(err)
	}
	for create, want := range map[bool]error{true: checkpoint.ErrSuperseded, false: checkpoint.ErrMissing} {
		if _, err := checkpoint.Claim(t.Context(), checkpoints, "orders", checkpoint.Claimant{Owner: "a", Create: create}); !errors.Is(err, want) {
			t.Errorf("Claim of a retired checkpoint with Create %v = %v, want %v", create, err, want)
		}
		if found, err := checkpoints.Read(t.Context(), "orders"); err != nil || !found.Retired || found.Term != 7 {
			t.Errorf("the checkpoint is %+v, %v, want it as it was", found, err)
		}
	}
}
