package chaos

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// What projectors note of their collections while a command is refused, it has not changed.
func TestOwnership_IsOfOwnersAlone(t *testing.T) {
	t.Parallel()
	c := repairing(t, "exit 1")
	documents := []any{
		bson.D{{Key: "_id", Value: "orders"}, {Key: "group", Value: ""}},
		bson.D{{Key: "_id", Value: "$127.0.0.1/changes/projector"}, {Key: "group", Value: beside}},
		bson.D{{Key: "_id", Value: "shadow"}},
		bson.D{{Key: "_id", Value: "$seen:orders"}},
		bson.D{{Key: "_id", Value: "$shape:orders/orders"}},
	}
	if _, err := c.witness.ReadModel().Collection(owners).InsertMany(t.Context(), documents); err != nil {
		t.Fatal(err)
	}
	got, err := c.ownership(t.Context())
	if want := `orders of ""; $127.0.0.1/changes/projector of "beside"; shadow of nobody; `; err != nil || got != want {
		t.Errorf("got %q and %v, want %q", got, err, want)
	}
}
