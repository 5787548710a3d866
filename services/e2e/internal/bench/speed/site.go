package speed

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/e2e/internal/bench/stage"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/latency"
	"changerelay/services/e2e/internal/harness/load"
	"changerelay/services/e2e/internal/harness/orders"
)

// topic is not partitioned, so that batches may be mixed.
const topic = "events"

// site is a stage with all events in it.
type site struct {
	stage     *stage.Stage
	endpoints cluster.Endpoints // the broker behind a longer way where that is asked for
	total     int
	events    *mongo.Collection
	start     time.Time // before the first event
	broker    *latency.Way
}

// open makes a site.
func (c Config) open(ctx context.Context) (*site, error) {
	at, err := c.Open(ctx, stage.Topic{Name: topic, Deduplicates: true, Subscriptions: []string{"projector"}})
	if err != nil {
		return nil, err
	}
	s := &site{stage: at, total: c.Events, start: time.Now().Add(-time.Second)}
	if s.broker, err = latency.To(ctx, at.Endpoints(), c.RoundTrip); err != nil {
		return nil, errors.Join(err, at.Close(ctx))
	}
	s.endpoints = at.Endpoints()
	s.endpoints.ServiceBus = s.broker.Endpoints.ServiceBus
	if err := s.fill(ctx, c); err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	return s, nil
}

// fill writes the events: the same ones at every site.
func (s *site) fill(ctx context.Context, c Config) error {
	names := s.stage.Names(topic)
	s.events = s.stage.Client().Database(names.SourceDatabase).Collection(names.SourceCollection)
	l := load.Load{
		To:    s.stage.Source(topic),
		Next:  load.Limited(c.Events, load.Generated(orders.NewGenerator(1, c.Aggregates))),
		Wrote: func([]orders.Event) {},
		Least: time.Hour, // the events end
	}
	return l.Run(ctx, nil)
}

func (s *site) close(ctx context.Context) error {
	return errors.Join(s.broker.Close(), s.stage.Close(ctx))
}

// took is what a measurement took: how many events, in which time, with which
// processor time of the one who worked.
type took struct {
	events int
	time   time.Duration
	client time.Duration
	memory int64 // of publishers, in bytes
	growth float64
}

// since returns a function that says what it took since since was called, where
// cpu is the processor time of the one who works.
func since(cpu func() time.Duration) func(events int) took {
	began, client := time.Now(), cpu()
	return func(events int) took {
		return took{events: events, time: time.Since(began), client: cpu() - client}
	}
}

func ownCPU() time.Duration { return cluster.Self().CPU }
