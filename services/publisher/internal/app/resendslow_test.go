package app_test

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/testserver"
)

// TestResend_OneThatCannotBeReadSaysWhyAndMakesWayForAnother has one of a document that takes
// longer over the link than a chunk may, cancels it, and requests one of another aggregate.
func TestResend_OneThatCannotBeReadSaysWhyAndMakesWayForAnother(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	_, err := source.Indexes().CreateOne(t.Context(), driver.IndexModel{Keys: bson.D{{Key: "aggregateId", Value: 1}, {Key: "version", Value: 1}, {Key: "_id", Value: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	event := func(aggregateID string, size int) bson.D {
		return bson.D{
			{Key: "_id", Value: "of " + aggregateID},
			{Key: "aggregateId", Value: aggregateID},
			{Key: "version", Value: 1},
			{Key: "type", Value: "OrderPlaced"},
			{Key: "data", Value: bson.D{{Key: "text", Value: strings.Repeat("x", size)}}},
		}
	}
	if _, err := source.InsertMany(t.Context(), []any{event("large", 1_800_000), event("small", 10)}); err != nil {
		t.Fatal(err)
	}
	proxy, through := mongoProxy(t, servers)
	proxy.Narrow(36_000)
	c := configured(servers)
	p := run(t, configured(servers, func(c *config.Config) { c.MongoURI = through }))
	p.await(t, "the publisher to lead", leading)
	if _, err := resends(t, c, "--aggregate", "large", "--why", "a test"); err != nil {
		t.Fatal(err)
	}
	awaitResend(t, c, "the document to be named", func(v command.ResendView) bool {
		return strings.Contains(strings.Join(v.Warnings, " "), "the document with _id")
	})
	for _, args := range [][]string{{"cancel"}, {"--aggregate", "small", "--why", "a test"}} {
		if _, err := resends(t, c, args...); err != nil {
			t.Fatal(err)
		}
	}
	if view := awaitResend(t, c, "the other one to be done", ended); view.Sent != 1 {
		t.Errorf("it is %+v, want the small one sent", view)
	}
}
