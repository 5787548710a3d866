package suite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/check/watch"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/load"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/poll"
)

// arrival is one event's way: from right before its insert was sent to when a
// change stream showed a read document that has come to it. Both are times of
// this process.
type arrival struct{ written, readable time.Time }

func (s arrival) took() time.Duration { return s.readable.Sub(s.written) }

// arrivals gathers them. Its methods are safe for concurrent use.
type arrivals struct {
	to load.Inserter

	mu      sync.Mutex // guards what follows
	waiting map[string][]underWay
	pending int
	seen    []arrival
}

// underWay is an event that is not readable yet.
type underWay struct {
	version int64
	at      time.Time
}

func newArrivals(to load.Inserter) *arrivals {
	return &arrivals{to: to, waiting: make(map[string][]underWay)}
}

// Insert implements load.Inserter.
func (s *arrivals) Insert(ctx context.Context, events []orders.Event) error {
	s.note(events, time.Now())
	return s.to.Insert(ctx, events)
}

func (s *arrivals) note(events []orders.Event, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		s.waiting[e.Aggregate] = append(s.waiting[e.Aggregate], underWay{e.Version, now})
	}
	s.pending += len(events)
}

// saw notes a read document: every event of its aggregate up to its version is
// readable now.
func (s *arrivals) saw(a validate.Apply, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.waiting[a.Document]
	for len(waiting) > 0 && waiting[0].version <= a.Version {
		s.seen = append(s.seen, arrival{waiting[0].at, now})
		waiting = waiting[1:]
		s.pending--
	}
	s.waiting[a.Document] = waiting
}

// underWay is how many events are not readable yet.
func (s *arrivals) underWay() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending
}

// oldest is when the oldest event that is not readable was written; zero where
// all are readable.
func (s *arrivals) oldest() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	var oldest time.Time
	for _, waiting := range s.waiting {
		if len(waiting) > 0 && (oldest.IsZero() || waiting[0].at.Before(oldest)) {
			oldest = waiting[0].at
		}
	}
	return oldest
}

// readableAfter returns the ways of the events that became readable after a time.
func (s *arrivals) readableAfter(t time.Time) []arrival {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, _ := slices.BinarySearchFunc(s.seen, t, func(s arrival, t time.Time) int { return s.readable.Compare(t) })
	return slices.Clone(s.seen[i:])
}

// await waits until everything written before a time is readable, and something
// written after it, so that the relay is known to be at work.
func (s *arrivals) await(ctx context.Context, t time.Time) error {
	return poll.Until(ctx, "what was written to be readable", func(context.Context) (bool, string) {
		oldest := s.oldest()
		past := slices.ContainsFunc(s.readableAfter(t), func(s arrival) bool { return s.written.After(t) })
		return past && (oldest.IsZero() || oldest.After(t)), fmt.Sprintf("since %v", oldest)
	})
}

// watched is a relay at a steady rate, with what became of every event.
type watched struct {
	cluster  *cluster.Cluster
	arrivals *arrivals
}

// watch runs a relay under a steady rate of events until do returns.
func (b *bench) watch(ctx context.Context, cfg cluster.Config, rate, aggregates int, do func(context.Context, watched) error) (err error) {
	s, err := b.open(ctx, relayTopic())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	cfg.Names, cfg.Projections = s.Names(changes), filepath.Join(b.root, "services", "e2e", "orders.yaml")
	c, err := s.Services(cfg)
	if err != nil {
		return err
	}
	seen := newArrivals(s.Source(changes))
	applies, err := watch.OpenApplies(ctx, s.Client().Database(cfg.Names.ReadModelDatabase).Collection("orders"), func(a validate.Apply) { seen.saw(a, time.Now()) })
	if err != nil {
		return err
	}
	defer c.Close()
	if err := up(ctx, c); err != nil {
		return err
	}
	return steadily(ctx, seen, applies, rate, aggregates, func(ctx context.Context) error { return do(ctx, watched{c, seen}) })
}

// errDone ends the writing and the watching.
var errDone = errors.New("done")

// steadily writes and watches while do runs.
func steadily(ctx context.Context, s *arrivals, applies *watch.Applies, rate, aggregates int, do func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return applies.Run(ctx) })
	group.Go(func() error {
		l := load.Load{
			To: s, Rate: rate, Next: load.Generated(orders.NewGenerator(seed, aggregates)), Wrote: func([]orders.Event) {},
		}
		return l.Run(ctx, make(chan struct{}))
	})
	group.Go(func() error {
		if err := do(ctx); err != nil {
			return err
		}
		return errDone
	})
	if err := group.Wait(); !errors.Is(err, errDone) {
		return err
	}
	return nil
}
