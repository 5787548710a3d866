package suite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"golang.org/x/sync/errgroup"

	"changerelay/services/e2e/internal/bench/results"
	"changerelay/services/e2e/internal/bench/stage"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/load"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/poll"
	"changerelay/services/e2e/internal/harness/source"
)

const (
	// backlog is how many events may be written and not yet applied.
	backlog = 20_000
	// backlogBytes bounds the same for large documents.
	backlogBytes = 64 << 20
	// memoryBound is what a publisher or a projector may have resident, in bytes,
	// as long as documents are small.
	memoryBound = 150 << 20
	// stopTimeout bounds the good order in which the processes stop.
	stopTimeout = 30 * time.Second
	// seed makes the events; every measurement sees the same.
	seed = 1
)

// changes is the topic of a relay on a stage.
const changes = "changes"

func relayTopic() stage.Topic {
	return stage.Topic{Name: changes, Partitioned: true, Deduplicates: true, Subscriptions: []string{"projector"}}
}

// flow carries events over the whole path as fast as it takes them. Nothing is
// hit and nothing watches, for both would be measured too; in the end the
// read model is compared with a recomputation, so that a run that lost something
// does not count.
type flow struct {
	events, aggregates int
	// size is what source documents are filled up to, in bytes; 0 leaves them as
	// they are, some 200. Filled up, all of it goes to the read model.
	size int
	// sizes are used in turn, in place of size.
	sizes []int
	// env is added to the environment of publisher and projector.
	env map[string]string

	cluster *cluster.Cluster
	client  *mongo.Client
	written atomic.Int64
}

// filled reports that source documents are filled up.
func (f *flow) filled() bool { return f.size > 0 || len(f.sizes) > 0 }

// figures measures and returns what came out.
func (f *flow) figures(ctx context.Context, b *bench) (figures []results.Figure, err error) {
	s, err := b.open(ctx, relayTopic())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	cfg := cluster.Config{Publishers: 1, Projectors: 1, Lease: cluster.LeaseOf(15 * time.Second), Names: s.Names(changes), PublisherEnv: f.env, ProjectorEnv: f.env}
	if !f.filled() {
		cfg.Projections = filepath.Join(b.root, "services", "e2e", "orders.yaml")
	}
	if f.cluster, err = s.Services(cfg); err != nil {
		return nil, err
	}
	defer f.cluster.Close()
	if err := up(ctx, f.cluster); err != nil {
		return nil, err
	}
	f.client = s.Client()
	took, err := f.carry(ctx)
	if err == nil {
		err = f.compare(ctx)
	}
	if err != nil {
		return nil, err
	}
	stopping, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if errs := cluster.Stop(stopping, slices.Concat(f.cluster.Publishers, f.cluster.Projectors)...); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	figures = append([]results.Figure{results.One("events", results.PerSecond, float64(f.events)/took.Seconds())}, f.usage(stopping, s)...)
	return figures, f.bounded()
}

// up starts the services and waits until they are at work.
func up(ctx context.Context, c *cluster.Cluster) error {
	if err := c.StartServices(); err != nil {
		return err
	}
	if _, _, err := c.AwaitLeader(ctx, 0); err != nil {
		return err
	}
	return c.AwaitProjectors(ctx)
}

// carry writes the events and returns how long it took from the first write to
// the last apply.
func (f *flow) carry(ctx context.Context) (time.Duration, error) {
	n := f.cluster.Names()
	most := backlog
	if f.filled() {
		most = max(min(most, backlogBytes/max(f.size, slices.Max(append(f.sizes, 0)))), 1)
	}
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		l := load.Load{
			To:    &throttled{to: source.NewWriter(f.client, n.SourceDatabase, n.SourceCollection), behind: f.behind, most: most},
			Next:  load.Limited(f.events, f.generated()),
			Wrote: func(e []orders.Event) { f.written.Add(int64(len(e))) },
			Least: time.Hour, // the events end
		}
		return l.Run(ctx, nil)
	})
	group.Go(func() error {
		return poll.Until(ctx, "all events to be applied", func(ctx context.Context) (bool, string) {
			n := f.applied(ctx)
			return n >= f.events, fmt.Sprint(n)
		})
	})
	err := group.Wait()
	return time.Since(began), err
}

// applied is how many messages the projector has completed. Nothing is killed
// and nothing else is on the topic, so that is how many events went through.
func (f *flow) applied(ctx context.Context) int {
	n := 0
	for _, p := range f.cluster.Projectors {
		if s, err := p.ProjectorStatus(ctx); err == nil {
			n += int(s.Completed)
		}
	}
	return n
}

func (f *flow) behind(ctx context.Context) int { return int(f.written.Load()) - f.applied(ctx) }

// usage tells what every process took. It stops the servers.
func (f *flow) usage(ctx context.Context, s *stage.Stage) []results.Figure {
	perEvent := func(name string, u cluster.Usage) results.Figure {
		return results.One("CPU per event, "+name, results.Microseconds, float64(u.CPU.Microseconds())/float64(f.events))
	}
	publisher, projector := f.cluster.Publishers[0].Usage(), f.cluster.Projectors[0].Usage()
	figures := []results.Figure{perEvent("publisher", publisher), perEvent("projector", projector)}
	if servers, ours := s.Servers(ctx); ours {
		figures = append(figures, perEvent("sandbox", servers))
	}
	return append(figures,
		results.One("memory, publisher", results.Bytes, float64(publisher.ResidentBytes)),
		results.One("memory, projector", results.Bytes, float64(projector.ResidentBytes)))
}

// bounded says which process took more memory than a backlog of small documents
// is a reason for.
func (f *flow) bounded() error {
	var errs []error
	for _, n := range slices.Concat(f.cluster.Publishers, f.cluster.Projectors) {
		if got := n.Usage().ResidentBytes; !f.filled() && got > memoryBound {
			errs = append(errs, fmt.Errorf("%s had %d MiB resident, more than %d", n.Name, got>>20, memoryBound>>20))
		}
	}
	return errors.Join(errs...)
}

// throttled holds inserts back while too many events are under way.
type throttled struct {
	to     load.Inserter
	behind func(context.Context) int
	most   int
}

// Insert implements load.Inserter. It inserts in parts of a tenth of what may be
// under way.
func (t *throttled) Insert(ctx context.Context, events []orders.Event) error {
	for part := range slices.Chunk(events, max(1, t.most/10)) {
		err := poll.Until(ctx, "the backlog to shrink", func(ctx context.Context) (bool, string) {
			n := t.behind(ctx)
			return n < t.most, fmt.Sprint(n)
		})
		if err != nil {
			return err
		}
		if err := t.to.Insert(ctx, part); err != nil {
			return err
		}
	}
	return nil
}
