package projectorbench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"changerelay/services/e2e/internal/cluster"
	"changerelay/services/e2e/internal/farther"
	"changerelay/services/e2e/internal/poll"
	"changerelay/services/e2e/internal/stage"
)

// Rates are what one repetition measured, in messages a second.
type Rates struct {
	Receive, Write, Transactions, Projector, Plain float64
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
// another, with the servers farther by a time. The plain loop, whose rate does
// not depend on it, stops after plain messages.
func Compare(ctx context.Context, s *stage.Stage, shape Shape, by time.Duration, plain int) (r Rates, err error) {
	err = filled(ctx, s, shape, by, func(ctx context.Context, b bench) error {
		r, err = b.compare(ctx, plain)
		return err
	})
	return r, err
}

// Drain fills the stage's topic and has projectors empty it, with the servers
// farther by a time. It returns how many messages a second they completed.
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
	way, err := farther.To(ctx, s.Endpoints(), by)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, bench{s, way.Endpoints, s.Topic(topic), shape}), way.Close())
}

func (b bench) compare(ctx context.Context, plain int) (r Rates, err error) {
	total := b.shape.total()
	rate := func(n int, took time.Duration) float64 { return float64(n) / took.Seconds() }
	took, err := b.rawSessions(ctx, rawSubscription)
	if err != nil {
		return r, err
	}
	r.Receive = rate(total, took)
	if took, err = b.rawWrites(ctx, "bulk", false); err != nil {
		return r, err
	}
	r.Write = rate(total, took)
	if took, err = b.rawWrites(ctx, "transactions", true); err != nil {
		return r, err
	}
	r.Transactions = rate(total, took)
	drained, err := b.relay(ctx, 1, projectorSubscription, nil)
	if err != nil {
		return r, err
	}
	r.Projector, r.ProjectorPeak = drained.PerSecond, drained.Peak
	handled, took, err := b.plainLoop(ctx, min(total, plain))
	if err != nil {
		return r, err
	}
	r.Plain = rate(handled, took)
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

// relay has projectors empty a subscription. The time begins with their
// processes, which is against them.
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
		took = time.Since(began)
		return completed >= int64(b.shape.total()), fmt.Sprintf("%d completed", completed)
	})
	c.Close()
	for _, p := range c.Projectors {
		usage := p.Usage()
		d.CPU += usage.CPU / time.Duration(b.shape.total())
		d.Peak = max(d.Peak, usage.ResidentBytes)
	}
	d.PerSecond = float64(b.shape.total()) / took.Seconds()
	return d, err
}
