package app_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/app"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
)

// The routers' own record of what is sharded how is a collection like any other.
func TestApp_RefusesACollectionThatIsShardedByAnotherKey(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	record := client.Database("config").Collection("collections")
	for name, key := range map[string]bson.D{
		"latest": {{Key: "customer", Value: 1}}, "byid": {{Key: "_id", Value: 1}}, "byhash": {{Key: "_id", Value: "hashed"}},
		"dropped": {{Key: "customer", Value: 1}}, "compound": {{Key: "_id", Value: 1}, {Key: "customer", Value: 1}},
	} {
		if _, err := record.InsertOne(t.Context(), bson.D{{Key: "_id", Value: database + "." + name}, {Key: "key", Value: key}, {Key: "dropped", Value: name == "dropped"}}); err != nil {
			t.Fatal(err)
		}
	}
	cfg := configured(t, "doctor", database)
	environ(t, servers, "doctor", servers.MongoURI, database)
	for _, name := range []string{"latest", "compound"} {
		t.Setenv("LATEST_COLLECTION", name)
		if lines, err := runCommand(t, "setup"); err == nil || len(lines) != 0 || !strings.Contains(err.Error(), `collection "`+name+`" with the shard key`) {
			t.Errorf("setup: got %v and %v, want it refused by name", lines, err)
		}
		p, err := app.New(t.Context(), cfg, projection.Projections{projection.Latest{Collection: name}}, "test", &logs{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if err := p.Run(ctx); !errors.Is(err, readmodel.ErrShardKey) {
			t.Errorf("run with %q: got %v, want it refused", name, err)
		}
		cancel()
	}
	for _, name := range []string{"byid", "byhash", "dropped"} {
		t.Setenv("LATEST_COLLECTION", name)
		if _, err := runCommand(t, "setup"); err != nil {
			t.Errorf("setup of %s: got %v", name, err)
		}
	}
}
