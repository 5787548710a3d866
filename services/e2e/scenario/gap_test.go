package scenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/harness/cluster"
)

// steps counts the events of an aggregate and lists them.
const steps = `projections:
  - name: steps
    collection: steps
    on:
      Step:
        inc: {events: 1}
        push: {seen: {value: data.n, last: 10}}
`

// The publisher parks the second of four events, and sends it once it can be
// mapped: behind the third and the fourth, which have waited for it.
func TestGap_AnEventThatIsReplayedLateIsAppliedInItsPlace(t *testing.T) {
	t.Parallel()
	projections := filepath.Join(t.TempDir(), "steps.yaml")
	if err := os.WriteFile(projections, []byte(steps), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, func(c *cluster.Config) {
		c.Projections = projections
		c.ProjectorEnv = map[string]string{"ON_GAP": "wait", "GAP_WAIT": "1s"}
	})
	names := r.Names()
	events := r.witness.Client.Database(names.SourceDatabase).Collection(names.SourceCollection)
	insert := func(n int, kind string) {
		_, err := events.InsertOne(within(t), bson.D{
			{Key: "_id", Value: fmt.Sprintf("late/%d", n)},
			{Key: "aggregateId", Value: "late"},
			{Key: "version", Value: n},
			{Key: kind, Value: "Step"},
			{Key: "data", Value: bson.D{{Key: "n", Value: n}}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	read := func(ctx context.Context) string {
		var document struct {
			Events int
			Seen   []int
		}
		// Without a document there are no events.
		_ = r.witness.ReadModel().Collection("steps").FindOne(ctx, bson.D{{Key: "_id", Value: "late"}}).Decode(&document)
		return fmt.Sprint(document.Events, document.Seen)
	}
	insert(1, "type")
	insert(2, "kind")
	insert(3, "type")
	insert(4, "type")
	await(t, "the aggregate to be halted for the gap", func(ctx context.Context) (bool, string) {
		var halt struct{ Reason string }
		err := r.witness.ReadModel().Collection("halted_aggregates").FindOne(ctx, bson.D{{Key: "_id", Value: "late"}}).Decode(&halt)
		return err == nil && halt.Reason == "version gap: version 3 follows 1", halt.Reason
	})
	if got, want := read(within(t)), "1 [1]"; got != want {
		t.Errorf("before the missing event: got events %s, want %s", got, want)
	}
	// Read by another path, the second event has a type.
	status, output := execute(t, binaries.Publisher, []string{
		"MONGODB_URI=" + r.Endpoints().MongoURI, "SOURCE_DATABASE=" + names.SourceDatabase, "SOURCE_COLLECTION=" + names.SourceCollection,
		"STATE_DATABASE=" + names.StateDatabase, "LEASE_NAME=" + names.LeaseName,
		"SERVICEBUS_CONNECTION_STRING=" + r.Endpoints().ServiceBus, "SERVICEBUS_TOPIC=" + names.Topic, "FIELD_TYPE=kind",
	}, "parked", "replay", "--all")
	if status != 0 {
		t.Fatalf("replay: exit status %d:\n%s", status, output)
	}
	await(t, "all four in their order", func(ctx context.Context) (bool, string) {
		got := read(ctx)
		return got == "4 [1 2 3 4]", got
	})
	insert(5, "type")
	await(t, "the aggregate to go on", func(ctx context.Context) (bool, string) {
		got := read(ctx)
		return got == "5 [1 2 3 4 5]", got
	})
}
