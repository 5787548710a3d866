package suite

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/cluster/clustertest"
	"changerelay/services/e2e/internal/harness/orders"
)

// readModel fills the read model of a flow with what its first events make.
func readModel(t *testing.T, f *flow, carried int) {
	t.Helper()
	model, latest, versions := orders.Model{}, orders.Latest{}, map[string]int64{}
	next := f.generated()
	for range carried {
		e, _ := next()
		model.Apply(e)
		latest.Apply(e)
		versions[e.Aggregate] = e.Version
	}
	database := f.client.Database(f.cluster.Names().ReadModelDatabase)
	for id, version := range versions {
		relay := bson.M{"aggregateVersion": version}
		doc := bson.M{"_id": id, "_relay": relay}
		maps.Copy(doc, model[id])
		for collection, doc := range map[string]bson.M{"orders": doc, "latest": {"_id": id, "_relay": relay, "data": latest[id]}} {
			if _, err := database.Collection(collection).InsertOne(t.Context(), doc); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// However fast it was: a run that lost an event does not count.
func TestCompare_AReadModelThatLacksAnEventIsNoResult(t *testing.T) {
	t.Parallel()
	servers := clustertest.Sandbox(t)
	client, err := mongo.Connect(options.Client().ApplyURI(servers.MongoURI))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) })
	const events = 100
	for _, size := range []int{0, 500} {
		for _, carried := range []int{events, events - 1} {
			t.Run(fmt.Sprintf("%d of %d events, filled up to %d", carried, events, size), func(t *testing.T) {
				t.Parallel()
				names := cluster.DefaultNames().OfRun(fmt.Sprintf("%d_%d", size, carried))
				f := &flow{events: events, aggregates: 10, size: size, client: client, cluster: cluster.New(cluster.Config{Names: names, Backend: &servers})}
				readModel(t, f, carried)
				if err := f.compare(t.Context()); (err == nil) != (carried == events) {
					t.Errorf("got %v", err)
				}
			})
		}
	}
}
