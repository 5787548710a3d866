package app_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/sandboxtest"
)

// What a run could not apply it does not try twice, and counts once.
func TestDeadRedrive_TriesAnAggregateThatStopsOnce(t *testing.T) {
	const topic = "deadtried"
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	// The collection refuses what the projection is content with.
	validator := bson.D{{Key: "events", Value: bson.D{{Key: "$ne", Value: 1}}}}
	if err := db.CreateCollection(t.Context(), "orders", options.CreateCollection().SetValidator(validator)); err != nil {
		t.Fatal(err)
	}
	send(t, topic, happened("a", 1, 1)...)
	deadLetter(t, topic, "a")
	p := start(t, configured(t, topic, database), parse(t))
	onTopic(t, topic, database, counting)
	until(t, "the projector runs", func() bool { return strings.Contains(p.logs.String(), "taking sessions") })
	lines, err := runCommand(t, "dlq", "redrive", "--all")
	if err == nil || !strings.Contains(err.Error(), ": 0; and 1 of their aggregates are still halted") {
		t.Errorf("got %v, want one aggregate still halted", err)
	}
	if len(lines) != 2 || lines[0]["fate"] != "put back" || lines[1]["failed_event_id"] != "a-1" {
		t.Errorf("got %v, want the dead letter put back, and once why it cannot be applied", lines)
	}
}

// What is parked is applied only after its dead letter is taken away: while another
// holds that, nothing is, and the next run goes on there.
func TestDeadRedrive_AppliesNothingWhoseDeadLetterIsStillThere(t *testing.T) {
	const topic = "deadheld"
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	send(t, topic, happened("a", 1, 1)...)
	deadLetter(t, topic, "a")
	p := start(t, configured(t, topic, database), parse(t))
	onTopic(t, topic, database, counting)
	until(t, "the projector runs", func() bool { return strings.Contains(p.logs.String(), "taking sessions") })
	receiver, err := servers.Client(t).NewReceiverForSubscription(topic, "projector", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = receiver.Close(t.Context()) }()
	held, err := receiver.ReceiveMessages(t.Context(), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := runCommand(t, "dlq", "redrive", "--all")
	if err == nil || !strings.Contains(err.Error(), "is locked by another") || len(lines) != 1 || lines[0]["fate"] != "put back" {
		t.Errorf("got %v and %v, want it parked, and that another holds the dead letter", lines, err)
	}
	if orders := sandboxtest.Documents(t, db, "orders"); len(orders) != 0 || count(t, db, "parked_messages") != 1 || count(t, db, "halted_aggregates") != 1 {
		t.Errorf("afterwards orders are %v, %d parked and %d halted; want nothing applied", orders, count(t, db, "parked_messages"), count(t, db, "halted_aggregates"))
	}
	if err := receiver.AbandonMessage(t.Context(), held[0], nil); err != nil {
		t.Fatal(err)
	}
	lines, err = runCommand(t, "dlq", "redrive", "--all")
	if err != nil || len(lines) != 2 || lines[1]["lifted"] != true {
		t.Errorf("the next run: got %v and %v, want it finished", lines, err)
	}
	if got := seen(sandboxtest.Documents(t, db, "orders")["a"]); !slices.Equal(got, []int64{1}) {
		t.Errorf("a: seen %v, want it once", got)
	}
}
