package mongostate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/testserver"
)

func TestSetup_AnIndexWithOtherOptionsIsSaidWithItsRemedy(t *testing.T) {
	t.Parallel()
	client, name := testserver.Mongo(t), testserver.Name(t)
	state := mongostate.New(client, name)
	leases := client.Database(name).Collection("leader_leases").Indexes()
	legacy, err := leases.CreateOne(t.Context(), mongo.IndexModel{
		Keys: bson.D{{Key: "expiresAt", Value: 1}}, Options: options.Index().SetExpireAfterSeconds(0).SetName("ttl"),
	})
	if err != nil {
		t.Fatal(err)
	}
	remedy := fmt.Sprintf("db.getSiblingDB(%q).leader_leases.dropIndex(%q)", name, legacy)
	if err := state.Setup(t.Context()); err == nil || !strings.Contains(err.Error(), remedy) {
		t.Fatalf("Setup = %v, want the remedy %s", err, remedy)
	}
	if err := leases.DropOne(t.Context(), legacy); err != nil {
		t.Fatal(err)
	}
	if err := state.Setup(t.Context()); err != nil {
		t.Errorf("Setup after the remedy = %v", err)
	}
}

func TestGaps_AllAreCountedAndABeginningIsNone(t *testing.T) {
	t.Parallel()
	ledger := mongostate.New(testserver.Mongo(t), testserver.Name(t)).Gaps("orders")
	for n := range 53 {
		decision := []string{"stop", "report", mongostate.Began}[n%3]
		if err := ledger.Enter(t.Context(), mongostate.Gap{FromTime: time.Unix(int64(n), 0), Decision: decision, At: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	counts, err := ledger.Counts(t.Context())
	if err != nil || len(counts) != 2 || counts["stop"] != 18 || counts["report"] != 18 {
		t.Errorf("Counts = %v, %v, want 18 each", counts, err)
	}
	if latest, err := ledger.Latest(t.Context()); err != nil || len(latest) != 20 {
		t.Errorf("Latest gave %d, %v, want 20", len(latest), err)
	}
}
