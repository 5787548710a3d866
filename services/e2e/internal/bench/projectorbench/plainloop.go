package projectorbench

import (
	"context"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// plainLoop is what one would write first: one session at a time, one message,
// one upsert, one completion. It stops after a number of messages.
func (b bench) plainLoop(ctx context.Context, most int) (handled int, took time.Duration, err error) {
	bus, err := azservicebus.NewClientFromConnectionString(b.endpoints.ServiceBus, nil)
	if err != nil {
		return 0, 0, fmt.Errorf("open Service Bus: %w", err)
	}
	defer func() { _ = bus.Close(context.WithoutCancel(ctx)) }()
	client, err := mongo.Connect(options.Client().ApplyURI(b.endpoints.MongoURI))
	if err != nil {
		return 0, 0, fmt.Errorf("open MongoDB: %w", err)
	}
	defer func() { _ = client.Disconnect(context.WithoutCancel(ctx)) }()
	to := client.Database(b.stage.Names(topic).ReadModelDatabase, options.Database().SetWriteConcern(writeconcern.Majority())).Collection("loop")
	began := time.Now()
	for handled < most {
		// It knows how long a session is, and never waits for nothing.
		n, err := b.plainSession(ctx, bus, to, min(b.shape.Messages, most-handled))
		handled += n
		if err != nil {
			return handled, 0, err
		}
	}
	return handled, time.Since(began), nil
}

func (b bench) plainSession(ctx context.Context, bus *azservicebus.Client, to *mongo.Collection, most int) (handled int, err error) {
	receiver, err := bus.AcceptNextSessionForSubscription(ctx, b.topic, plainSubscription, nil)
	if err != nil {
		return 0, fmt.Errorf("accept a session: %w", err)
	}
	defer func() { _ = receiver.Close(context.WithoutCancel(ctx)) }()
	for handled < most {
		messages, err := receiver.ReceiveMessages(ctx, 1, nil)
		if err != nil {
			return handled, fmt.Errorf("receive: %w", err)
		}
		if _, err := to.BulkWrite(ctx, []mongo.WriteModel{guarded(int(*messages[0].SequenceNumber), 1)}); err != nil {
			return handled, fmt.Errorf("write: %w", err)
		}
		if err := receiver.CompleteMessage(ctx, messages[0], nil); err != nil {
			return handled, fmt.Errorf("complete: %w", err)
		}
		handled++
	}
	return handled, nil
}
