package app_test

import (
	"context"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/sandboxtest"
	"changerelay/services/projector/internal/settings"
)

// What a projector ends that another one has left open is logged and counted.
func TestIdle_ATransactionThatIsEndedIsLoggedAndCounted(t *testing.T) {
	t.Parallel()
	uri := sandboxtest.StartWith(t, "").MongoURI
	cfg := configured(t, "idle", "shop")
	cfg.MongoURI = settings.Secret(uri)
	p := start(t, cfg, load(t, file(t, "projections.yaml", keyedToo)))
	send(t, "idle", event("a", 1, "Happened", `{}`))
	until(t, "it is applied", func() bool { return p.Status().Applied == 1 })
	if text := scraped(t, p); !strings.Contains(text, "projector_transactions_ended_total 0") {
		t.Errorf("before: got %s, want none counted", text)
	}

	client, err := mongo.Connect(options.Client().ApplyURI(uri).SetAppName(readmodel.Application))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) })
	dead, err := client.StartSession()
	if err == nil {
		err = dead.StartTransaction()
	}
	if err != nil {
		t.Fatal(err)
	}
	result, err := client.Database("shop").Collection("all").UpdateOne(mongo.NewSessionContext(t.Context(), dead),
		bson.D{{Key: "_id", Value: "all"}}, bson.D{{Key: "$set", Value: bson.D{{Key: "dead", Value: true}}}})
	if err != nil || result.MatchedCount != 1 {
		t.Fatalf("change the document: got %+v and %v", result, err)
	}
	send(t, "idle", event("a", 2, "Happened", `{}`))
	until(t, "the next is applied", func() bool { return p.Status().Applied == 2 })
	if text := scraped(t, p); !strings.Contains(text, "projector_transactions_ended_total 1") || !strings.Contains(p.logs.String(), `"transactions":1`) {
		t.Errorf("afterwards: got %s, want one counted and logged", text)
	}
}
