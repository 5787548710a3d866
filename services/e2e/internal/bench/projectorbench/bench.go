package projectorbench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/e2e/internal/bench/stage"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/latency"
	"changerelay/services/e2e/internal/harness/poll"
)

// Rates are what one repetition measured, in messages a second.
type Rates struct {
	Receive, Write, Folded, Transactions, Projector, Plain float64
	// ProjectorPeak is the most memory that the projector took, in bytes.
	ProjectorPeak int64
}

// bench is a backlog on a stage, and how its servers are reached.
type bench struct {
	stage     *stage.Stage
	endpoints cluster.Endpoints
	topic     string
	shape     Shape
}

// Compare fills the stage's topic and empties its subscriptions one way after
// another, in an order that is drawn, with a time added to each round trip. The plain loop, whose rate does
// not depend on it, stops after plain messages.
func Compare(ctx context.Context, s *stage.Stage, shape Shape, by time.Duration, plain int, order *rand.Rand) (r Rates, err error) {
	err = filled(ctx, s, shape, by, func(ctx context.Context, b bench) error {
		r, err = b.compare(ctx, plain, order)
		return err
	})
	return r, err
}

// Drain fills the stage's topic and has projectors empty it,
// with a time added to each round trip. It returns how many messages a second they completed.
func Drain(ctx context.Context, s *stage.Stage, shape Shape, projectors int, by time.Duration) (rate float64, err error) {
	err = filled(ctx, s, shape, by, func(ctx context.Context, b bench) error {
		drained, err := b.relay(ctx, projectors, projectorSubscription, nil)
		rate = drained.PerSecond
		return err
	})
	return rate, err
}

func filled(ctx context.Context, s *stage.Stage, shape Shape, by time.Duration, do func(context.Context, bench) error) error {
	near := bench{s, s.Endpoints(), s.Topic(topic), shape}
	if err := near.fill(ctx); err != nil {
		return err
	}
	way, err := latency.To(ctx, s.Endpoints(), by)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, bench{s, way.Endpoints, s.Topic(topic), shape}), way.Close())
}

// compare measures every way, in an order that is drawn.
func (b bench) compare(ctx context.Context, plain int, order *rand.Rand) (r Rates, err error) {
	rate := func(n int, took time.Duration) float64 { return float64(n) / took.Seconds() }
	whole := func(to *float64, do func(context.Context) (time.Duration, error)) func(context.Context) error {
		return func(ctx context.Context) error {
			took, err := do(ctx)
			*to = rate(b.shape.total(), took)
			return err
		}
	}
	writes := func(how writing) func(context.Context) (time.Duration, error) {
		return func(ctx context.Context) (time.Duration, error) { return b.rawWrites(ctx, how) }
	}
	ways := []func(context.Context) error{
		whole(&r.Receive, func(ctx context.Context) (time.Duration, error) { return b.rawSessions(ctx, rawSubscription) }),
		whole(&r.Write, writes(writing{collection: "bulk"})),
		whole(&r.Folded, writes(writing{collection: "folded", folds: true})),
		whole(&r.Transactions, writes(writing{collection: "transactions", transactions: true})),
		func(ctx context.Context) error {
			drained, err := b.relay(ctx, 1, projectorSubscription, nil)
			r.Projector, r.ProjectorPeak = drained.PerSecond, drained.Peak
			return err
		},
		func(ctx context.Context) error {
			handled, took, err := b.plainLoop(ctx, min(b.shape.total(), plain))
			r.Plain = rate(handled, took)
			return err
		},
	}
	order.Shuffle(len(ways), func(i, j int) { ways[i], ways[j] = ways[j], ways[i] })
	for _, way := range ways {
		if err := way(ctx); err != nil {
			return r, err
		}
	}
	return r, nil
}

// Drained is what it took to empty a subscription.
type Drained struct {
	PerSecond float64
	// CPU is the processor time of one message.
	CPU time.Duration
	// Peak is the most memory that one process took, in bytes.
	Peak int64
}

// relay has projectors empty a subscription, by their word and the broker's. The time
// begins with their processes, which is against them.
func (b bench) relay(ctx context.Context, projectors int, subscription string, env map[string]string) (d Drained, err error) {
	names := b.stage.Names(topic)
	names.Subscription = subscription
	names.ReadModelDatabase += "_" + subscription
	c, err := b.stage.Services(cluster.Config{Projectors: projectors, Names: names, Backend: &b.endpoints, ProjectorEnv: env})
	if err != nil {
		return d, err
	}
	defer c.Close()
	began := time.Now()
	if err := c.StartServices(); err != nil {
		return d, err
	}
	var took time.Duration
	err = poll.Until(ctx, "the projectors to complete everything", func(ctx context.Context) (bool, string) {
		var completed int64
		for _, p := range c.Projectors {
			if s, err := p.ProjectorStatus(ctx); err == nil {
				completed += s.Completed
			}
		}
		if completed < int64(b.shape.total()) {
			return false, fmt.Sprintf("%d completed", completed)
		}
		waiting, err := b.stage.Waiting(ctx, topic, subscription)
		took = time.Since(began)
		return err == nil && waiting == 0, fmt.Sprintf("%d completed, %d wait, error %v", completed, waiting, err)
	})
	if err == nil {
		err = b.stored(ctx, names)
	}
	c.Close()
	for _, p := range c.Projectors {
		usage := p.Usage()
		d.CPU += usage.CPU / time.Duration(b.shape.total())
		d.Peak = max(d.Peak, usage.ResidentBytes)
	}
	d.PerSecond = float64(b.shape.total()) / took.Seconds()
	return d, err
}

// stored looks at the read model from outside: each session's document must have come to
// its last message.
func (b bench) stored(ctx context.Context, names cluster.Names) error {
	client, err := mongo.Connect(options.Client().ApplyURI(b.endpoints.MongoURI))
	if err != nil {
		return fmt.Errorf("open MongoDB: %w", err)
	}
	defer func() { _ = client.Disconnect(context.WithoutCancel(ctx)) }()
	last := bson.D{{Key: "_relay.aggregateVersion", Value: int64(b.shape.Messages)}}
	n, err := client.Database(names.ReadModelDatabase).Collection("latest").CountDocuments(ctx, last)
	if err == nil && n != int64(b.shape.Sessions) {
		err = fmt.Errorf("%d of %d documents have come to their last message", n, b.shape.Sessions)
	}
	return err
}
