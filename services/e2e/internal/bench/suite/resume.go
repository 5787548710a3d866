package suite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/e2e/internal/bench/results"
	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/load"
	"changerelay/services/e2e/internal/harness/orders"
)

func resume(s Scale) experiment {
	e := experiment{
		name: "resume", title: "A resume behind a long operation log", world: true,
		shows: fmt.Sprintf("A publisher stops, %s entries of others come into the operation log, and it starts again. The source takes %v to go through them, as it would for %s entries at the 2.2 µs that were measured on real ones. "+
			"From when it leads until it has sent an event from behind them; and how long its status said meanwhile that it is resuming.",
			report.Thousands(int64(s.Foreign)), s.Scan, report.Thousands(int64(s.Scan/(2200*time.Nanosecond)))),
	}
	for i := range s.Repeats {
		e.rounds = append(e.rounds, round{
			name: fmt.Sprintf("repetition %d", i+1), usual: 10*time.Second + s.Scan + time.Duration(s.Foreign)*10*time.Microsecond,
			measure: func(ctx context.Context, b *bench) ([]results.Point, error) {
				figures, err := b.resume(ctx)
				return []results.Point{{Name: report.Thousands(int64(s.Foreign)) + " entries", Figures: figures}}, err
			},
		})
	}
	return e
}

func (b *bench) resume(ctx context.Context) (figures []results.Figure, err error) {
	cfg := b.cfg
	cfg.History = 2 * b.scale.Foreign
	s, err := b.openWith(ctx, cfg, relayTopic())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	names := s.Names(changes)
	c, err := s.Services(cluster.Config{Publishers: 1, Lease: cluster.LeaseOf(15 * time.Second), Names: names})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	p := c.Publishers[0]
	lead := func() error {
		if err := c.StartServices(); err != nil {
			return err
		}
		_, _, err := c.AwaitLeader(ctx, 0)
		return err
	}
	next := load.Generated(orders.NewGenerator(seed, 1))
	write := func() error {
		event, _ := next()
		return s.Source(changes).Insert(ctx, []orders.Event{event})
	}
	if err := errors.Join(lead(), write()); err != nil {
		return nil, err
	}
	if _, err := b.sending(ctx, p, 1); err != nil {
		return nil, err
	}
	if errs := cluster.Stop(ctx, p); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if err := b.foreign(ctx, s.Client().Database(names.SourceDatabase).Collection("others")); err != nil {
		return nil, err
	}
	if err := write(); err != nil {
		return nil, err
	}
	slow := based("loopback", map[string]any{"resume_per_entry": (b.scale.Scan / time.Duration(b.scale.Foreign)).String()}, nil)
	if err := errors.Join(s.Become(ctx, slow), lead()); err != nil {
		return nil, err
	}
	return b.resuming(ctx, p)
}

// foreign writes changes that are not the stream's.
func (b *bench) foreign(ctx context.Context, others *mongo.Collection) error {
	const batch = 5000
	telling := b.telling()
	for n := 0; n < b.scale.Foreign; n += batch {
		var models []mongo.WriteModel
		for i := n; i < min(n+batch, b.scale.Foreign); i++ {
			models = append(models, mongo.NewUpdateOneModel().SetFilter(bson.D{{Key: "_id", Value: 1}}).
				SetUpdate(bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: i}}}}).SetUpsert(true))
		}
		if _, err := others.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(false)); err != nil {
			return fmt.Errorf("write changes of others: %w", err)
		}
		telling.now("%d of %d entries written", n, b.scale.Foreign)
	}
	return nil
}

// resuming looks at a publisher until it has sent something.
func (b *bench) resuming(ctx context.Context, p *cluster.Node) ([]results.Figure, error) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	telling := b.telling()
	began := time.Now()
	var said time.Duration
	for last := began; ; {
		status, err := p.PublisherStatus(ctx)
		now := time.Now()
		if err == nil && status.Sent > 0 {
			return []results.Figure{
				results.One("sent after", results.Seconds, now.Sub(began).Seconds()), results.One("said to be resuming", results.Seconds, said.Seconds()),
				ratio("of the source's time", now.Sub(began).Seconds(), b.scale.Scan.Seconds()),
			}, nil
		}
		if err == nil && status.State == "resuming" {
			said += now.Sub(last)
		}
		last = now
		telling.now("%s for %v", status.State, time.Since(began).Round(time.Second))
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
