package speed

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"golang.org/x/sync/errgroup"

	"changerelay/services/e2e/internal/bench/attributes"
)

const (
	// batch is how many messages the bare SDK puts in a batch: the publisher's
	// default.
	batch = 100
	// links is how many links the bare SDK has: the publisher's number.
	links = 4
	// streamBatch is how many changes one answer of the server holds: the
	// publisher's, too.
	streamBatch = 1000
	// window is the publisher's MAX_IN_FLIGHT: among so many events it finds those
	// of one aggregate that go together.
	window = 4096
)

// event is what the bare SDK sends of an event.
type event struct {
	aggregate string
	body      []byte
}

// watch opens the change stream of the events from the first on.
func (s *site) watch(ctx context.Context) (*mongo.ChangeStream, error) {
	return s.events.Watch(ctx, mongo.Pipeline{}, options.ChangeStream().
		SetStartAtOperationTime(&bson.Timestamp{T: uint32(s.start.Unix())}).SetBatchSize(streamBatch))
}

// drain reads all events with the bare driver, and keeps them for the bare SDK to
// send.
func (s *site) drain(ctx context.Context) (t took, read []event, err error) {
	since := since(ownCPU)
	stream, err := s.watch(ctx)
	if err != nil {
		return took{}, nil, err
	}
	defer func() { _ = stream.Close(context.WithoutCancel(ctx)) }()
	for len(read) < s.total && stream.Next(ctx) {
		read = append(read, eventOf(stream.Current))
	}
	return since(len(read)), read, stream.Err()
}

func eventOf(change bson.Raw) event {
	return eventIn(change.Lookup("fullDocument").Document())
}

func eventIn(document bson.Raw) event {
	return event{document.Lookup("aggregateId").StringValue(), bytes.Clone(document.Lookup("data").Value)}
}

// mixed puts the events in batches as they come.
func mixed(events []event) iter.Seq[[]event] { return slices.Chunk(events, batch) }

// bySession puts the events of one aggregate in a batch, as far as a window
// holds more than one.
func bySession(events []event) iter.Seq[[]event] {
	return func(yield func([]event) bool) {
		for seen := range slices.Chunk(events, window) {
			sorted := slices.Clone(seen)
			slices.SortStableFunc(sorted, func(a, b event) int { return cmp.Compare(a.aggregate, b.aggregate) })
			for len(sorted) > 0 {
				n := 1
				for n < min(len(sorted), batch) && sorted[n].aggregate == sorted[0].aggregate {
					n++
				}
				if !yield(sorted[:n]) {
					return
				}
				sorted = sorted[n:]
			}
		}
	}
}

// send sends batches with the bare SDK, over as many links as the publisher has,
// and some of them at once. Where events is more than they have, it sends them again as
// those of other aggregates.
func (s *site) send(ctx context.Context, atOnce int, batches [][]event, events int) (took, error) {
	client, err := azservicebus.NewClientFromConnectionString(s.endpoints.ServiceBus, nil)
	if err != nil {
		return took{}, err
	}
	defer func() { _ = client.Close(context.WithoutCancel(ctx)) }()
	senders := make([]*azservicebus.Sender, links)
	for i := range senders {
		if senders[i], err = connected(ctx, client, s.stage.Topic(topic)); err != nil {
			return took{}, err
		}
	}
	since := since(ownCPU)
	var next, taken, sent atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for i := range atOnce {
		group.Go(func() error {
			for {
				n := int(next.Add(1)) - 1
				round, of := n/len(batches), n%len(batches)
				if taken.Add(int64(len(batches[of]))) >= int64(events+len(batches[of])) {
					return nil
				}
				if err := sendBatch(ctx, senders[i%links], n*batch, inRound(batches[of], round)); err != nil {
					return err
				}
				sent.Add(int64(len(batches[of])))
			}
		})
	}
	err = group.Wait()
	return since(int(sent.Load())), err
}

// inRound are events of other aggregates in each round but the first.
func inRound(events []event, round int) []event {
	if round == 0 {
		return events
	}
	events = slices.Clone(events)
	for i := range events {
		events[i].aggregate += fmt.Sprintf("-%d", round)
	}
	return events
}

// connected returns a sender whose link is open.
func connected(ctx context.Context, client *azservicebus.Client, topic string) (*azservicebus.Sender, error) {
	sender, err := client.NewSender(topic, nil)
	if err != nil {
		return nil, err
	}
	_, err = sender.NewMessageBatch(ctx, nil) // connects
	return sender, err
}

// sendBatch sends events, numbered from the first on.
func sendBatch(ctx context.Context, sender *azservicebus.Sender, first int, events []event) error {
	if len(events) == 1 {
		return sender.SendMessage(ctx, message(first, events[0]), nil)
	}
	messages, err := sender.NewMessageBatch(ctx, nil)
	if err != nil {
		return err
	}
	for i, event := range events {
		if err := messages.AddMessage(message(first+i, event), nil); err != nil {
			return err
		}
	}
	return sender.SendMessageBatch(ctx, messages, nil)
}

// message is an event's message: as large as the publisher's, with the same
// properties.
func message(n int, e event) *azservicebus.Message {
	id, kind, format := fmt.Sprintf("event-%037d", n), "ItemAdded", "application/json"
	return &azservicebus.Message{
		MessageID: &id, SessionID: &e.aggregate, PartitionKey: &e.aggregate, Subject: &kind, ContentType: &format, Body: e.body,
		ApplicationProperties: attributes.Of(id, e.aggregate, kind, n),
	}
}

// plain runs the loop of the first design for a while: send one, save its token,
// go on.
func (s *site) plain(ctx context.Context, during time.Duration) (took, error) {
	client, err := azservicebus.NewClientFromConnectionString(s.endpoints.ServiceBus, nil)
	if err != nil {
		return took{}, err
	}
	defer func() { _ = client.Close(context.WithoutCancel(ctx)) }()
	sender, err := connected(ctx, client, s.stage.Topic(topic))
	if err != nil {
		return took{}, err
	}
	stream, err := s.watch(ctx)
	if err != nil {
		return took{}, err
	}
	defer func() { _ = stream.Close(context.WithoutCancel(ctx)) }()
	tokens := s.events.Database().Collection("resume_tokens")
	since, began, n := since(ownCPU), time.Now(), 0
	for time.Since(began) < during && n < s.total && stream.Next(ctx) {
		if err := sender.SendMessage(ctx, message(n, eventOf(stream.Current)), nil); err != nil {
			return took{}, err
		}
		_, err := tokens.UpdateByID(ctx, "plain", bson.D{{Key: "$set", Value: bson.D{{Key: "token", Value: stream.ResumeToken()}}}}, options.UpdateOne().SetUpsert(true))
		if err != nil {
			return took{}, err
		}
		n++
	}
	return since(n), stream.Err()
}
