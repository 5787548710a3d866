package app_test

import (
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// TestReplay_OvertakesNothingThatIsNotSentYet parks a change while an earlier one of its
// aggregate waits for the topic, stops the publisher, and mends the mapping.
func TestReplay_OvertakesNothingThatIsNotSentYet(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	c := configured(servers, func(c *config.Config) { c.ShutdownTimeout = time.Second })
	p := run(t, c)
	p.await(t, "the publisher to lead", leading)
	accept := testserver.Fault(t, servers, `{"kind":"servicebus.throttle","path":"`+testserver.Topic+`"}`)
	for version, fields := range []bson.D{{{Key: "type", Value: "t"}, {Key: "kind", Value: "t"}}, {{Key: "kind", Value: "t"}}} {
		event := append(bson.D{{Key: "aggregateId", Value: "order-1"}, {Key: "version", Value: version + 1}}, fields...)
		if _, err := source.InsertOne(t.Context(), event); err != nil {
			t.Fatal(err)
		}
	}
	p.await(t, "the second to be parked", func(s status.Status) bool { return s.Parked == 1 && s.InFlight > 0 })
	_ = p.quit() // says that the first was not sent
	accept()
	c.FieldType = "kind"
	got, err := lines(t, c, "parked", "replay", "--all")
	if err == nil || len(got) != 1 || !strings.Contains(got[0].Error, "start the publishers with these settings") {
		t.Fatalf("replay before the first is sent says %+v, %v, want it refused, and what to do", got, err)
	}
	p = run(t, c)
	p.await(t, "both to be sent", sent(2))
	if got, err := lines(t, c, "parked", "replay", "--all"); err != nil || len(got) != 1 {
		t.Errorf("replay beside the leader that has sent both says %+v, %v", got, err)
	}
	for n, m := range receive(t, servers, 2) {
		if m.ApplicationProperties["cloudEvents_aggregateversion"] != int64(n+1) {
			t.Errorf("message %d is version %v", n, m.ApplicationProperties["cloudEvents_aggregateversion"])
		}
	}
}
