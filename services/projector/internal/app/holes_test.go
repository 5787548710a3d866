package app_test

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/sandboxtest"
)

// second makes the environment of version 2 the commands' own, on a subscription
// of a topic, with version 1 live and at the nth event of aggregate a.
func (v *versions) second(t *testing.T, topic, subscription string, n int64) {
	t.Helper()
	v.use(1)
	if _, err := runCommand(t, "setup"); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		applied(t, v.old, 1, "a", i+1, "Happened")
	}
	v.on(t, topic, subscription)
}

// on makes a subscription that of version 2.
func (v *versions) on(t *testing.T, topic, subscription string) {
	t.Helper()
	v.topics[2] = topic
	t.Setenv("SERVICEBUS_SUBSCRIPTION", subscription)
	v.use(2)
}

// A version may be further on than what is missing in it: events that the broker
// has dead-lettered stand in no position.
func TestSwitch_IsRefusedWhileEventsOfTheVersionAreDeadLettered(t *testing.T) {
	v := newVersions(t)
	cfg := v.config
	cfg.Topic = "holes"
	v.second(t, "holes", "projector", 3)
	send(t, "holes", happened("a", 1, 2)...)
	deadLetter(t, "holes", "a")
	deadLetter(t, "holes", "a")
	send(t, "holes", happened("a", 3, 3)...)
	p := start(t, cfg, load(t, v.files[2]))
	until(t, "what is left is applied", func() bool { return p.Status().Applied == 1 })
	refusedFor(t, "orders", `2 messages of 1 aggregates are dead-lettered in subscription "projector" of topic "holes"`)
	refusedFor(t, "totals", "2 messages of 1 aggregates are dead-lettered")
	if lines, err := runCommand(t, "switch", "orders", "--to", "2", "--dry-run"); err == nil || len(lines) != 1 || lines[0]["refused"] == nil {
		t.Errorf("a dry switch: got %v and %v, want it refused", lines, err)
	}
	switchTo(t, "totals", "2", "--force")
	if lines, err := runCommand(t, "dlq", "discard", "--all"); err != nil || len(lines) != 2 {
		t.Fatalf("discard: got %v and %v, want both gone", lines, err)
	}
	refusedFor(t, "orders", "version 2 begins 1 aggregates later than version 1") // they are missing for good
	switchTo(t, "orders", "2", "--force")
}

// What the projector has found to be no event is missing nowhere.
func TestSwitch_IsNotRefusedForForeignDeadLetters(t *testing.T) {
	v := newVersions(t)
	cfg := v.config
	cfg.Topic = "notholes"
	v.second(t, "notholes", "projector", 0)
	sandboxtest.Send(t, servers, "notholes", contract.Message{ID: "foreign", SessionID: "f", Body: []byte("hello")})
	p := start(t, cfg, load(t, v.files[2]))
	until(t, "it is dead-lettered", func() bool { return p.Status().DeadLettered == 1 })
	switchTo(t, "orders", "2")
}

// Where nobody can look, nobody knows.
func TestSwitch_IsRefusedWhereTheDeadLettersCannotBeLookedAt(t *testing.T) {
	v := newVersions(t)
	v.second(t, "versions", "missing", 0)
	refusedFor(t, "orders", `the dead letters of subscription "missing" of topic "versions" cannot be looked at`)
	v.on(t, "versions", "projector")
	t.Setenv("SERVICEBUS_CONNECTION_STRING", "")
	refusedFor(t, "orders", "SERVICEBUS_CONNECTION_STRING: set either this or SERVICEBUS_NAMESPACE")
	switchTo(t, "orders", "2", "--force")
	switchTo(t, "totals", "2", "--force")
	t.Setenv("SERVICEBUS_CONNECTION_STRING", servers.ServiceBus)
	switchTo(t, "orders", "2")
}

// A parked message is missing in its version, also where its halt is gone.
func TestSwitch_IsRefusedWhileMessagesAreParked(t *testing.T) {
	v := newVersions(t)
	v.second(t, "versions", "projector", 0)
	parked := v.client.Database(v.database).Collection(projection.OfGroup(projection.ParkedMessages, "second"), options.Collection().SetWriteConcern(writeconcern.Majority()))
	if _, err := parked.InsertOne(t.Context(), bson.D{{Key: "_id", Value: "a"}}); err != nil {
		t.Fatal(err)
	}
	refusedFor(t, "orders", "1 messages are parked")
}

// What a broker had that nobody can look at from here may have been missing.
func TestSwitch_IsRefusedWhereASubscriptionOfAnotherNamespaceFedTheVersion(t *testing.T) {
	v := newVersions(t)
	v.second(t, "versions", "projector", 0)
	feed := v.client.Database(v.database).Collection(projection.OfGroup(projection.Processes, "second"), options.Collection().SetWriteConcern(writeconcern.Majority()))
	t.Setenv("SERVICEBUS_CONNECTION_STRING", strings.Replace(servers.ServiceBus, "127.0.0.1", "localhost", 1))
	from := func(namespace string) {
		t.Helper()
		before := bson.D{{Key: "namespace", Value: namespace}, {Key: "topic", Value: "gone"}, {Key: "subscription", Value: "projector"}}
		updated, err := feed.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: "feed"}}, bson.D{{Key: "$set", Value: bson.D{{Key: "namespace", Value: "localhost"}, {Key: "before", Value: bson.A{before}}}}})
		if err != nil || updated.MatchedCount != 1 {
			t.Fatalf("got %+v and %v, want the feed changed", updated, err)
		}
	}
	from("elsewhere.example")
	refusedFor(t, "orders", `they are in the namespace "elsewhere.example"`)
	from("127.0.0.1")
	refusedFor(t, "orders", `they are in the namespace "127.0.0.1"`)
	// Its names have no case; of an older release the namespace is not known.
	from("LocalHost")
	switchTo(t, "orders", "2")
	from("")
	switchTo(t, "totals", "2")
}
