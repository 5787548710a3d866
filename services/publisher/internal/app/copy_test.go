package app_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// TestCopy_IntoATopicSlowerThanTheReadsLosesNothing copies more than fits in the
// window, while the topic lets each send wait, and cuts the first publisher off
// on the way, as a kill would.
func TestCopy_IntoATopicSlowerThanTheReadsLosesNothing(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	for range 20 {
		source.write(t, 1000, 100)
	}
	index := bson.D{{Key: "aggregateId", Value: 1}, {Key: "version", Value: 1}, {Key: "_id", Value: 1}}
	if _, err := source.Indexes().CreateOne(t.Context(), driver.IndexModel{Keys: index}); err != nil {
		t.Fatal(err)
	}
	testserver.Fault(t, servers, `{"kind":"servicebus.delay","path":"changes","delay":"20ms","of":["send"]}`)
	copies := func(c *config.Config) { c.StartAt = "snapshot" }
	mongo, throughMongo := mongoProxy(t, servers)
	bus, throughBus := busProxy(t, servers)
	killed := run(t, configured(servers, copies, named("a"), func(c *config.Config) {
		c.MongoURI, c.StateMongoURI, c.ServiceBusConnection = throughMongo, throughMongo, throughBus
	}))
	shown := killed.await(t, "a part to be copied", func(s status.Status) bool { return s.Copy != nil && s.Copy.Copied >= 3000 })
	if c := shown.Copy; c.Total != 20_000 || c.PerSecond <= 0 || c.SecondsLeft == nil || *c.SecondsLeft <= 0 || c.Index != "aggregateId_1_version_1__id_1" {
		t.Errorf("the copy is shown as %+v, want how far it is, how long it takes and its index", c)
	}
	mongo.Cut()
	bus.Cut()
	follower := run(t, configured(servers, copies, named("b")))
	follower.await(t, "the copy to end", func(s status.Status) bool { return leading(s) && s.Copy == nil && s.Sent > 0 && s.InFlight == 0 })
	source.wantAll(t, source.drain(t, servers))
}

// TestCopy_GoesOnBehindALargeDocument has an event in the middle that fills a chunk by
// itself, of a copy, and of a resend in the smallest window. Its message is small.
func TestCopy_GoesOnBehindALargeDocument(t *testing.T) {
	t.Parallel()
	large := func(t *testing.T, source *source, bytes int) {
		t.Helper()
		index := bson.D{{Key: "aggregateId", Value: 1}, {Key: "version", Value: 1}, {Key: "_id", Value: 1}}
		if _, err := source.Indexes().CreateOne(t.Context(), driver.IndexModel{Keys: index}); err != nil {
			t.Fatal(err)
		}
		source.write(t, 40, 4)
		_, err := source.UpdateOne(t.Context(), bson.D{{Key: "aggregateId", Value: "order-001"}, {Key: "version", Value: 5}},
			bson.D{{Key: "$set", Value: bson.D{{Key: "attachment", Value: strings.Repeat("x", bytes)}}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Run("copied", func(t *testing.T) {
		t.Parallel()
		servers := testserver.Start(t)
		source := events(t, servers)
		large(t, source, 4<<20)
		p := run(t, configured(servers, func(c *config.Config) { c.StartAt = "snapshot" }))
		p.await(t, "the stream to follow the copy", func(s status.Status) bool { return leading(s) && s.Copy == nil && s.Sent > 0 && s.InFlight == 0 })
		if shown := p.status(t); shown.Sent != 40 {
			t.Errorf("the copy sent %d events, want 40", shown.Sent)
		}
	})
	t.Run("sent again", func(t *testing.T) {
		t.Parallel()
		servers := testserver.Start(t)
		source := events(t, servers)
		large(t, source, 256<<10)
		c := configured(servers, func(c *config.Config) { c.MaxInFlightBytes = 1 << 20 })
		p := run(t, c)
		p.await(t, "the publisher to lead", leading)
		if _, err := resends(t, c, "--all", "--why", "a test", "--rate", "0"); err != nil {
			t.Fatal(err)
		}
		if view := awaitResend(t, c, "the resend to end", ended); view.Sent != 40 {
			t.Errorf("the resend sent %d events, want 40", view.Sent)
		}
	})
}

// TestCopy_PassesADocumentThatHasNoPlaceInItsOrder has such documents first and
// last in the collection. They are parked as the stream parks them.
func TestCopy_PassesADocumentThatHasNoPlaceInItsOrder(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	put := func(field string, value any) {
		t.Helper()
		whole := bson.D{{Key: "aggregateId", Value: "order-1"}, {Key: "version", Value: 1}, {Key: "type", Value: "OrderPlaced"}}
		for i := range whole {
			if whole[i].Key == field {
				whole[i].Value = value
			}
		}
		if _, err := source.InsertOne(t.Context(), whole); err != nil {
			t.Fatal(err)
		}
	}
	put("aggregateId", bson.A{"a", "b"})
	put("version", bson.A{})
	source.write(t, 20, 4)
	put("aggregateId", bson.Regex{Pattern: "a"})
	c := configured(servers, func(c *config.Config) { c.StartAt = "snapshot" })
	p := run(t, c)
	p.await(t, "the stream to follow the copy", func(s status.Status) bool { return leading(s) && s.Copy == nil && s.Parked == 3 })
	source.write(t, 5, 1)
	source.wantAll(t, source.drain(t, servers))
	if listed, err := lines(t, c, "parked", "list"); err != nil || len(listed) != 3 {
		t.Errorf("listed %+v, %v, want three changes", listed, err)
	}
}

// TestCopy_StoppedAtADocumentGoesOnAsTheHaltSays has ON_UNMAPPABLE=stop, and does
// what the error says: the one thing, or the other.
func TestCopy_StoppedAtADocumentGoesOnAsTheHaltSays(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		anew   bool
		parked int64
		then   func(*config.Config)
	}{
		"deleted and inserted anew": {anew: true, then: func(*config.Config) {}},
		"parked":                    {parked: 1, then: func(c *config.Config) { c.OnUnmappable = "park" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			source := events(t, servers)
			source.write(t, 10, 2)
			whole := bson.D{
				{Key: "_id", Value: "odd"}, {Key: "aggregateId", Value: "a"}, {Key: "version", Value: bson.A{1}}, {Key: "type", Value: "OrderPlaced"},
			}
			if _, err := source.InsertOne(t.Context(), whole); err != nil {
				t.Fatal(err)
			}
			c := configured(servers, func(c *config.Config) { c.StartAt, c.OnUnmappable = "snapshot", "stop" })
			p := run(t, c)
			shown := p.await(t, "the copy to halt", func(s status.Status) bool { return s.State == "halted" })
			for _, part := range []string{"version", "odd", "insert it as it should be", "ON_UNMAPPABLE=park"} {
				if !strings.Contains(shown.LastError, part) {
					t.Errorf("last error is %q, without %q", shown.LastError, part)
				}
			}
			if code, _ := p.get(t, "/ready"); code != http.StatusServiceUnavailable {
				t.Errorf("/ready answers %d, want 503", code)
			}
			if err := p.quit(); err != nil {
				t.Fatal(err)
			}
			if tt.anew {
				if _, err := source.DeleteOne(t.Context(), bson.D{{Key: "_id", Value: "odd"}}); err != nil {
					t.Fatal(err)
				}
				whole[2].Value = 1
				if _, err := source.InsertOne(t.Context(), whole); err != nil {
					t.Fatal(err)
				}
			}
			tt.then(&c)
			back := run(t, c)
			back.await(t, "the stream to follow the copy", func(s status.Status) bool {
				return leading(s) && s.Copy == nil && s.Parked == tt.parked && s.Sent+s.Parked > 0
			})
			all := receive(t, servers, 11-int(tt.parked))
			if got := slices.ContainsFunc(all, func(m *azservicebus.ReceivedMessage) bool { return *m.SessionID == "a" }); got != tt.anew {
				t.Errorf("the document is sent: %v, want %v", got, tt.anew)
			}
		})
	}
}

func TestStatus_TellsHowLongTheLeaseLasts(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	p := run(t, configured(servers))
	shown := p.await(t, "the rest of the lease", func(s status.Status) bool { return leading(s) && s.LeaseEndsInSeconds != nil })
	if left := *shown.LeaseEndsInSeconds; left < 0 || left > 3.5 {
		t.Errorf("the lease ends in %g s, want at most its time", left)
	}
}

// TestCopy_IsNotTakenUpUnderOtherSettings stops a copy on the way. Under settings
// that say another source or another order, its rest would be that of another copy.
func TestCopy_IsNotTakenUpUnderOtherSettings(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*config.Config)
		names  string
	}{
		"another collection":   {func(c *config.Config) { c.SourceCollection = "others" }, "SOURCE_COLLECTION"},
		"another aggregate id": {func(c *config.Config) { c.FieldAggregateID = "_id" }, "FIELD_AGGREGATE_ID"},
		"another mode":         {func(c *config.Config) { c.Mode = "documents" }, "MODE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			source := events(t, servers)
			for range 4 {
				source.write(t, 1000, 100)
			}
			if err := source.Database().CreateCollection(t.Context(), "others"); err != nil {
				t.Fatal(err)
			}
			copies := func(c *config.Config) { c.StartAt, c.StreamName, c.SnapshotRate = "snapshot", "orders", 1000 }
			stopped := run(t, configured(servers, copies))
			stopped.await(t, "a part to be copied", func(s status.Status) bool { return s.Copy != nil && s.Copy.Copied >= 1000 })
			if err := stopped.quit(); err != nil {
				t.Fatal(err)
			}
			other := run(t, configured(servers, copies, tt.change))
			other.awaitHalt(t, "settings of a copy changed", tt.names, "publisher checkpoint reset")
			if err := other.quit(); err != nil {
				t.Fatal(err)
			}
			run(t, configured(servers, copies)).await(t, "the copy to end", func(s status.Status) bool { return leading(s) && s.Copy == nil && s.InFlight == 0 })
			source.wantAll(t, source.drain(t, servers))
		})
	}
}
