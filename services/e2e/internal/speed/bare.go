package speed

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"golang.org/x/sync/errgroup"

	"changerelay/services/e2e/internal/attributes"
)

const (
	// batch is how many messages the bare SDK puts in a batch: the publisher's
	// default.
	batch = 100
	// streamBatch is how many changes one answer of the server holds: the
	// publisher's, too.
	streamBatch = 1000
)

// watch opens the change stream of the events from the start of the run.
func (r *run) watch(ctx context.Context) (*mongo.ChangeStream, error) {
	return r.events.Watch(ctx, mongo.Pipeline{}, options.ChangeStream().
		SetStartAtOperationTime(&bson.Timestamp{T: uint32(r.start.Unix())}).SetBatchSize(streamBatch))
}

// drain reads all events with the bare driver, and keeps their bytes for the
// bare SDK to send.
func (r *run) drain(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	stream, err := r.watch(ctx)
	if err != nil {
		return 0, fmt.Errorf("drain the change stream: %w", err)
	}
	defer func() { _ = stream.Close(context.WithoutCancel(ctx)) }()
	for len(r.bodies) < r.config.Events && stream.Next(ctx) {
		r.bodies = append(r.bodies, append([]byte(nil), stream.Current.Lookup("fullDocument").Value...))
	}
	return time.Since(began), stream.Err()
}

// send sends all events with the bare SDK, in batches, with as many senders at
// once as given.
func (r *run) send(ctx context.Context, topic string, senders int) (time.Duration, error) {
	client, err := azservicebus.NewClientFromConnectionString(r.endpoints.ServiceBus, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = client.Close(context.WithoutCancel(ctx)) }()
	sender, err := client.NewSender(topic, nil)
	if err != nil {
		return 0, err
	}
	if _, err := sender.NewMessageBatch(ctx, nil); err != nil { // connects
		return 0, fmt.Errorf("connect to topic %q: %w", topic, err)
	}
	began := time.Now()
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range senders {
		group.Go(func() error {
			for {
				from := int(next.Add(batch)) - batch
				if from >= len(r.bodies) {
					return nil
				}
				if err := sendBatch(ctx, sender, from, r.bodies[from:min(from+batch, len(r.bodies))]); err != nil {
					return err
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		return 0, fmt.Errorf("send batches: %w", err)
	}
	return time.Since(began), nil
}

func sendBatch(ctx context.Context, sender *azservicebus.Sender, from int, bodies [][]byte) error {
	messages, err := sender.NewMessageBatch(ctx, nil)
	if err != nil {
		return err
	}
	for i, body := range bodies {
		if err := messages.AddMessage(message(from+i, body), nil); err != nil {
			return err
		}
	}
	return sender.SendMessageBatch(ctx, messages, nil)
}

// message is a message of a session of its own, with the properties that those
// of the publisher have.
func message(n int, body []byte) *azservicebus.Message {
	id, kind, format := fmt.Sprintf("event-%016d", n), "ItemAdded", "application/json"
	return &azservicebus.Message{
		MessageID: &id, SessionID: &id, PartitionKey: &id, Subject: &kind, ContentType: &format, Body: body,
		ApplicationProperties: attributes.Of(id, id, kind, n),
	}
}

// plain runs the loop of the first design for a while: send one, save its token,
// go on. It returns how many events it got through.
func (r *run) plain(ctx context.Context, topic string, during time.Duration) (int, time.Duration, error) {
	client, err := azservicebus.NewClientFromConnectionString(r.endpoints.ServiceBus, nil)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = client.Close(context.WithoutCancel(ctx)) }()
	sender, err := client.NewSender(topic, nil)
	if err != nil {
		return 0, 0, err
	}
	stream, err := r.watch(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("plain loop: %w", err)
	}
	defer func() { _ = stream.Close(context.WithoutCancel(ctx)) }()
	if _, err := sender.NewMessageBatch(ctx, nil); err != nil { // connects
		return 0, 0, fmt.Errorf("connect to topic %q: %w", topic, err)
	}
	tokens := r.events.Database().Client().Database("plain").Collection("resume_tokens")
	began, n := time.Now(), 0
	for time.Since(began) < during && n < r.config.Events && stream.Next(ctx) {
		if err := sender.SendMessage(ctx, message(n, stream.Current.Lookup("fullDocument").Value), nil); err != nil {
			return 0, 0, fmt.Errorf("plain loop: %w", err)
		}
		_, err := tokens.UpdateByID(ctx, topic, bson.D{{Key: "$set", Value: bson.D{{Key: "token", Value: stream.ResumeToken()}}}}, options.UpdateOne().SetUpsert(true))
		if err != nil {
			return 0, 0, fmt.Errorf("plain loop: %w", err)
		}
		n++
	}
	return n, time.Since(began), stream.Err()
}
