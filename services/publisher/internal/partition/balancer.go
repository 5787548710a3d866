package partition

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
)

// Membership is where instances announce themselves.
type Membership interface {
	// Announce says that member is there, for a while from now, and which partitions
	// it stands aside from.
	Announce(ctx context.Context, member string, aside []int, during time.Duration) error
	// Withdraw says that member is not there any more.
	Withdraw(ctx context.Context, member string) error
	// Snapshot returns who is there, and who holds what.
	Snapshot(ctx context.Context) (Snapshot, error)
}

// Config is the timing of a Balancer.
type Config struct {
	// Member names this instance. Two instances must not share a name.
	Member string
	// Announce is the time between announcements.
	Announce time.Duration
	// Present is how long an announcement lasts: above Announce, and not above the
	// lease of a partition, or a dead instance's share is kept for it too long.
	Present time.Duration
	// Look is the time between two looks at the snapshot.
	Look time.Duration
	// Aside returns the partitions that are left to other instances now, in their
	// order; nil stands aside from none.
	Aside func(ctx context.Context) []int
}

// confirmations is how many snapshots in a row must say that a partition is not ours
// before it is given up, so that one that was taken in the middle of a move
// moves nothing.
const confirmations = 2

// Balancer runs this instance's share of the partitions.
type Balancer struct {
	config     Config
	membership Membership
	run        func(ctx context.Context, partition int) error
	log        zerolog.Logger
}

// New returns a Balancer that has not begun. run campaigns for a partition, and
// works on it while it leads, until ctx ends; then it returns nil after it has
// given the partition up. An error ends the Balancer.
func New(config Config, membership Membership, run func(ctx context.Context, partition int) error, log zerolog.Logger) *Balancer {
	return &Balancer{config: config, membership: membership, run: run, log: log}
}

// Run shares until ctx ends, and returns when all partitions are given up. It
// may be called once.
func (b *Balancer) Run(ctx context.Context) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return b.share(groupCtx, group) })
	return group.Wait()
}

// campaign is one partition that this instance works on or wants.
type campaign struct {
	stop    context.CancelFunc
	done    chan struct{}
	strikes int // snapshots in a row that say it is not ours
}

func (b *Balancer) share(ctx context.Context, group *errgroup.Group) error {
	ticker := time.NewTicker(b.config.Look)
	defer ticker.Stop()
	// The others begin to take over while the work here ends.
	defer b.withdraw(ctx)
	running := map[int]*campaign{}
	var announcedAt time.Time
	var aside []int
	failing := false
	for {
		was := aside
		aside = b.aside(ctx)
		if !slices.Equal(aside, was) || time.Since(announcedAt) >= b.config.Announce {
			announcedAt = time.Now()
			if err := b.announce(ctx, aside); err != nil {
				announcedAt = time.Time{}
			}
		}
		snapshot, err := b.look(ctx, aside)
		switch {
		case err == nil:
			failing = false
			b.follow(ctx, group, running, Assign(snapshot)[b.config.Member])
		case ctx.Err() == nil && !failing:
			failing = true
			b.log.Warn().Err(err).Msg("partitions not looked at, keeping the ones at hand")
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (b *Balancer) aside(ctx context.Context) []int {
	if b.config.Aside == nil {
		return nil
	}
	attempt, cancel := context.WithTimeout(ctx, b.config.Announce)
	defer cancel()
	return b.config.Aside(attempt)
}

func (b *Balancer) announce(ctx context.Context, aside []int) error {
	attempt, cancel := context.WithTimeout(ctx, b.config.Announce)
	defer cancel()
	return b.membership.Announce(attempt, b.config.Member, aside, b.config.Present)
}

// look returns the snapshot, with this instance in it, whether or not its
// announcement is there yet.
func (b *Balancer) look(ctx context.Context, aside []int) (Snapshot, error) {
	attempt, cancel := context.WithTimeout(ctx, b.config.Announce)
	defer cancel()
	snapshot, err := b.membership.Snapshot(attempt)
	if err != nil {
		return Snapshot{}, err
	}
	snapshot.Members = append(snapshot.Members, b.config.Member)
	others := maps.Clone(snapshot.Aside)
	if others == nil {
		others = map[string][]int{}
	}
	others[b.config.Member] = aside
	snapshot.Aside = others
	return snapshot, nil
}

func (b *Balancer) withdraw(ctx context.Context) {
	attempt, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.config.Announce)
	defer cancel()
	if err := b.membership.Withdraw(attempt, b.config.Member); err != nil {
		b.log.Debug().Err(err).Msg("not withdrawn, the announcement ends by itself")
	}
}

// follow starts the campaigns that are wanted, and stops those that have not
// been for long enough.
func (b *Balancer) follow(ctx context.Context, group *errgroup.Group, running map[int]*campaign, wanted []int) {
	for partition, c := range running {
		select {
		case <-c.done:
			delete(running, partition)
			continue
		default:
		}
		if slices.Contains(wanted, partition) {
			c.strikes = 0
		} else if c.strikes++; c.strikes == confirmations {
			b.log.Info().Int("partition", partition).Msg("partition given up for another instance")
			c.stop()
		}
	}
	for _, partition := range wanted {
		if running[partition] == nil {
			running[partition] = b.start(ctx, group, partition)
		}
	}
}

func (b *Balancer) start(ctx context.Context, group *errgroup.Group, partition int) *campaign {
	work, stop := context.WithCancel(ctx)
	c := &campaign{stop: stop, done: make(chan struct{})}
	b.log.Info().Int("partition", partition).Msg("campaigning for a partition")
	group.Go(func() error {
		defer close(c.done)
		defer stop()
		err := b.run(work, partition)
		if err == nil || work.Err() != nil && errors.Is(err, context.Cause(work)) {
			return nil
		}
		return fmt.Errorf("partition %d: %w", partition, err)
	})
	return c
}
