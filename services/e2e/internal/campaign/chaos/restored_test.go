package chaos

import (
	"context"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	mongodriver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/e2e/internal/harness/cluster/clustertest"
)

func TestRestore_MakesADatabaseWhatItsCopySays(t *testing.T) {
	t.Parallel()
	client, err := mongodriver.Connect(options.Client().ApplyURI(clustertest.Sandbox(t).MongoURI))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	database := client.Database("read")
	insert := func(id string, n int) {
		t.Helper()
		same := bson.D{{Key: "_id", Value: id}}
		if _, err := database.Collection("orders").ReplaceOne(t.Context(), same, append(same, bson.E{Key: "n", Value: n}), options.Replace().SetUpsert(true)); err != nil {
			t.Fatal(err)
		}
	}
	insert("changed", 1)
	insert("gone", 1)
	var from backup
	if from.documents, err = dump(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	insert("changed", 2)
	insert("new", 2)
	if _, err := database.Collection("orders").DeleteOne(t.Context(), bson.D{{Key: "_id", Value: "gone"}}); err != nil {
		t.Fatal(err)
	}
	if err := from.restore(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	all, err := dump(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range all["orders"] {
		if n, _ := document.Lookup("n").AsInt64OK(); n != 1 {
			t.Errorf("got %v, want what it was", document)
		}
	}
	if len(all["orders"]) != 2 {
		t.Errorf("got %d documents, want the two of before", len(all["orders"]))
	}
}

func TestConfig_AReadDatabaseIsPutBackAloneAndWhereVersionsAreWaitedFor(t *testing.T) {
	t.Parallel()
	cfg := config(t, "--operators", "read database")
	if m := cfg.mode(); !cfg.restores() || m.Projector["ON_GAP"] != "wait" || m.Documents != nil {
		t.Errorf("got %v, want ON_GAP=wait and documents that are events", m)
	}
	if all := config(t, "--operators", "all"); all.restores() {
		t.Error("all mistakes: got this one among them")
	}
}
