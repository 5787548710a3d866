package scenario

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/orders"
)

func TestBadInput_AnEventWithoutAggregateIsParkedAndTheRestFlows(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	r.write(t, 300)
	names := r.Names()
	nameless := bson.D{{Key: "_id", Value: "nameless"}, {Key: "version", Value: 1}, {Key: "type", Value: orders.Placed}, {Key: "data", Value: bson.D{}}}
	events := r.witness.Client.Database(names.SourceDatabase).Collection(names.SourceCollection)
	if _, err := events.InsertOne(within(t), nameless); err != nil {
		t.Fatal(err)
	}
	r.write(t, 300)
	if err := r.witness.AwaitDrain(within(t)); err != nil {
		t.Error(err)
	}
	var parked bson.Raw
	await(t, "the parked change", func(ctx context.Context) (bool, string) {
		err := r.witness.State().Collection("parked_changes").FindOne(ctx, bson.D{}).Decode(&parked)
		return err == nil, "none"
	})
	if text := parked.String(); !strings.Contains(text, "aggregateId") || !strings.Contains(text, "nameless") {
		t.Errorf("parked change: got %s, want its reason (no aggregateId) and the whole document", text)
	}
	await(t, "the leader's status to show it", func(ctx context.Context) (bool, string) {
		_, s, found := r.Leader(ctx)
		return found && s.Parked == 1, "not shown"
	})
	r.judge(t, witness.ParkedChanges)
}

func TestBadInput_AForeignMessageIsDeadLetteredWithItsReason(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	r.write(t, 300)
	client, err := azservicebus.NewClientFromConnectionString(r.Endpoints().ServiceBus, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	r.send(t, client, &azservicebus.Message{
		MessageID: new("foreign-1"), SessionID: new("order-000000"), PartitionKey: new("order-000000"),
		Body: []byte("hello"), ApplicationProperties: map[string]any{"who": "a stranger"},
	})
	r.write(t, 300)
	dead := r.deadLetter(t, client)
	if dead.MessageID != "foreign-1" {
		t.Errorf("dead letter: got %s, want foreign-1", dead.MessageID)
	}
	if dead.DeadLetterReason == nil || *dead.DeadLetterReason == "" {
		t.Error("dead letter: got no reason, want one")
	}
	if dead.DeadLetterErrorDescription == nil || !strings.Contains(*dead.DeadLetterErrorDescription, "specversion") {
		t.Errorf("dead letter: got description %v, want one that names what is missing", dead.DeadLetterErrorDescription)
	}
	await(t, "a projector's status to show it", func(ctx context.Context) (bool, string) {
		return slices.ContainsFunc(r.Projectors, func(p *cluster.Node) bool {
			s, err := p.ProjectorStatus(ctx)
			return err == nil && s.DeadLettered == 1
		}), "not shown"
	})
	r.judge(t, witness.DeadLettered, witness.Foreign)
}

func (r *relay) send(t *testing.T, client *azservicebus.Client, m *azservicebus.Message) {
	t.Helper()
	sender, err := client.NewSender(r.Names().Topic, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := sender.SendMessage(within(t), m, nil); err != nil {
		t.Fatal(err)
	}
}

// deadLetter takes one message from the projector's dead-letter queue.
func (r *relay) deadLetter(t *testing.T, client *azservicebus.Client) *azservicebus.ReceivedMessage {
	t.Helper()
	receiver, err := client.NewReceiverForSubscription(r.Names().Topic, r.Names().Subscription, &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	if err != nil {
		t.Fatal(err)
	}
	messages, err := receiver.ReceiveMessages(within(t), 1, nil)
	if err != nil || len(messages) != 1 {
		t.Fatalf("dead letters: got %d, %v, want 1", len(messages), err)
	}
	return messages[0]
}
