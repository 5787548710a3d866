package app_test

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/settings"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// ofWorld starts a sandbox in a world of the test's own.
func ofWorld(t *testing.T, world string) testserver.Servers {
	t.Helper()
	file := filepath.Join(t.TempDir(), "world.json")
	if err := os.WriteFile(file, []byte(world), 0o600); err != nil {
		t.Fatal(err)
	}
	return testserver.Start(t, "--world", file)
}

// TestParked_ALargeChangeIsParkedOverANarrowLink has an event that no message can carry,
// and a state database behind a link over which it takes eight seconds.
func TestParked_ALargeChangeIsParkedOverANarrowLink(t *testing.T) {
	t.Parallel()
	servers := ofWorld(t, `{"service_bus": {"max_message_bytes": 262144}}`)
	kept := ofWorld(t, `{"mongodb": {"bytes_per_second": 1048576}}`)
	source := events(t, servers)
	p := run(t, configured(servers, func(c *config.Config) {
		c.StateMongoURI = settings.Secret(kept.MongoURI)
		c.LeaseTTL = time.Minute // is renewed over the same link
	}))
	p.await(t, "the publisher to lead", leading)
	data := make([]byte, 8<<20)
	_, _ = rand.Read(data) // it never fails
	_, err := source.InsertOne(t.Context(), bson.D{
		{Key: "aggregateId", Value: "large"}, {Key: "version", Value: 1}, {Key: "type", Value: "OrderPlaced"}, {Key: "data", Value: data},
	})
	if err != nil {
		t.Fatal(err)
	}
	source.write(t, 3, 3)
	p.await(t, "the large event to be parked, and the others to be sent", func(s status.Status) bool {
		return s.Parked == 1 && s.Sent == 3 && s.InFlight == 0
	})
	if strings.Contains(p.log.String(), "change not parked") {
		t.Error("it took more than one attempt, want time for its size in the first")
	}
}
