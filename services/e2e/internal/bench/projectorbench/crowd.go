package projectorbench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"golang.org/x/sync/errgroup"

	"changerelay/services/e2e/internal/bench/stage"
	"changerelay/services/e2e/internal/harness/cluster"
)

// Crowded is how a projector served sessions that wait beside others that never end.
type Crowded struct {
	// PerSecond is how many sessions were served in a second, and Longest how long it took
	// from when the first of them was sent until the last one's document was read.
	PerSecond float64
	Longest   time.Duration
	// Hot is how often documents of sessions that never end changed in a second meanwhile.
	Hot float64
	// Peak is the most memory that the projector took, in bytes.
	Peak int64
}

// hotPause is how long a session that never ends waits for its next ten messages.
const hotPause = 50 * time.Millisecond

// Crowd has a projector serve hot sessions that get more messages all the time, and sends
// it as many sessions of one message as fast as it can. What was served, and when, is
// seen in a change stream of the read model.
func Crowd(ctx context.Context, s *stage.Stage, sessions, hot int) (r Crowded, err error) {
	b := bench{s, s.Endpoints(), s.Topic(topic), Shape{Sessions: sessions, Messages: 1}}
	names := s.Names(topic)
	names.Subscription = projectorSubscription
	seen, err := b.watch(ctx, names.ReadModelDatabase)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, seen.Close(context.WithoutCancel(ctx))) }()
	c, err := s.Services(cluster.Config{Projectors: 1, Names: names, Backend: &b.endpoints})
	if err != nil {
		return r, err
	}
	defer c.Close()
	if err := c.StartServices(); err != nil {
		return r, err
	}
	sending, stop := context.WithCancel(ctx)
	var heat errgroup.Group
	heat.Go(func() error { return b.heat(sending, hot) })
	defer func() {
		stop()
		err = errors.Join(err, heat.Wait())
	}()
	if _, _, err := serve(ctx, seen, func(_, seen int) bool { return seen >= hot }); err != nil {
		return r, err
	}
	began := time.Now()
	heat.Go(func() error { return b.fill(ctx) })
	served, hotter, err := serve(ctx, seen, func(served, _ int) bool { return served >= sessions })
	if err != nil {
		return r, err
	}
	r.Longest = time.Since(began)
	c.Close()
	r.PerSecond, r.Hot = float64(served)/r.Longest.Seconds(), float64(hotter)/r.Longest.Seconds()
	r.Peak = c.Projectors[0].Usage().ResidentBytes
	return r, nil
}

// watch follows the documents of the read model.
func (b bench) watch(ctx context.Context, database string) (*mongo.ChangeStream, error) {
	changes := bson.A{bson.D{{Key: "$match", Value: bson.D{{Key: "ns.coll", Value: "latest"}}}}, bson.D{{Key: "$project", Value: bson.D{{Key: "documentKey", Value: 1}}}}}
	stream, err := b.stage.Client().Database(database).Watch(ctx, changes, options.ChangeStream().SetBatchSize(10_000))
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", database, err)
	}
	return stream, nil
}

// serve reads changes until enough sessions of the backlog, and changes of hot ones, were seen.
func serve(ctx context.Context, seen *mongo.ChangeStream, enough func(served, hot int) bool) (served, hot int, err error) {
	for !enough(served, hot) {
		if !seen.Next(ctx) {
			return served, hot, fmt.Errorf("%d sessions were served: %w", served, errors.Join(seen.Err(), context.Cause(ctx)))
		}
		if id, _ := seen.Current.Lookup("documentKey", "_id").StringValueOK(); strings.HasPrefix(id, hotPrefix) {
			hot++
			continue
		}
		served++
	}
	return served, hot, nil
}

const hotPrefix = "hot-"

// heat sends to sessions, ten messages at a time, until ctx ends.
func (b bench) heat(ctx context.Context, sessions int) error {
	client, err := azservicebus.NewClientFromConnectionString(b.endpoints.ServiceBus, nil)
	if err != nil {
		return fmt.Errorf("open Service Bus: %w", err)
	}
	defer func() { _ = client.Close(context.WithoutCancel(ctx)) }()
	sender, err := client.NewSender(b.topic, nil)
	if err != nil {
		return fmt.Errorf("open a sender: %w", err)
	}
	var group errgroup.Group
	for i := range sessions {
		group.Go(func() error {
			ticker := time.NewTicker(hotPause)
			defer ticker.Stop()
			for version := 1; ; {
				batch, err := sender.NewMessageBatch(context.WithoutCancel(ctx), nil)
				if err != nil {
					return fmt.Errorf("begin a batch: %w", err)
				}
				for range 10 {
					if err := batch.AddMessage(messageOf(fmt.Sprintf("%s%d", hotPrefix, i), version, filler), nil); err != nil {
						return fmt.Errorf("add to a batch: %w", err)
					}
					version++
				}
				if err := sender.SendMessageBatch(context.WithoutCancel(ctx), batch, nil); err != nil {
					return fmt.Errorf("send to a hot session: %w", err)
				}
				select {
				case <-ticker.C:
				case <-ctx.Done():
					return nil
				}
			}
		})
	}
	return group.Wait()
}
