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

// Roster is where instances announce themselves.
type Roster interface {
	// Announce says that member is there, for a while from now, and which partitions
	// it stands aside from.
	Announce(ctx context.Context, member string, aside []int, during time.Duration) error
	// Withdraw says that member is not there any more.
	Withdraw(ctx context.Context, member string) error
	// Picture returns who is there, and who holds what.
	Picture(ctx context.Context) (Picture, error)
}

// Config is the timing of a Sharer.
type Config struct {
	// Member names this instance. Two instances must not share a name.
	Member string
	// Announce is the time between announcements.
	Announce time.Duration
	// Present is how long an announcement lasts: above Announce, and not above the
	// lease of a partition, or a dead instance's share is kept for it too long.
	Present time.Duration
	// Look is the time between two looks at the picture.
	Look time.Duration
	// Aside returns the partitions that are left to other instances now, in their
	// order; nil stands aside from none.
	Aside func(ctx context.Context) []int
}

// patience is how many pictures in a row must say that a partition is not ours
// before it is given up, so that one that was taken in the middle of a move
// moves nothing.
const patience = 2

// Sharer runs this instance's share of the partitions.
type Sharer struct {
	config Config
	roster Roster
	run    func(ctx context.Context, partition int) error
	log    zerolog.Logger
}

// New returns a Sharer that has not begun. run campaigns for a partition, and
// works on it while it leads, until ctx ends; then it returns nil after it has
// given the partition up. An error ends the Sharer.
func New(config Config, roster Roster, run func(ctx context.Context, partition int) error, log zerolog.Logger) *Sharer {
	return &Sharer{config: config, roster: roster, run: run, log: log}
}

// Run shares until ctx ends, and returns when all partitions are given up. It
// may be called once.
func (s *Sharer) Run(ctx context.Context) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.share(groupCtx, group) })
	return group.Wait()
}

// campaign is one partition that this instance works on or wants.
type campaign struct {
	stop    context.CancelFunc
	done    chan struct{}
	strikes int // pictures in a row that say it is not ours
}

func (s *Sharer) share(ctx context.Context, group *errgroup.Group) error {
	ticker := time.NewTicker(s.config.Look)
	defer ticker.Stop()
	// The others begin to take over while the work here ends.
	defer s.withdraw(ctx)
	running := map[int]*campaign{}
	var announcedAt time.Time
	var aside []int
	failing := false
	for {
		was := aside
		aside = s.aside(ctx)
		if !slices.Equal(aside, was) || time.Since(announcedAt) >= s.config.Announce {
			announcedAt = time.Now()
			if err := s.announce(ctx, aside); err != nil {
				announcedAt = time.Time{}
			}
		}
		picture, err := s.look(ctx, aside)
		switch {
		case err == nil:
			failing = false
			s.follow(ctx, group, running, Assign(picture)[s.config.Member])
		case ctx.Err() == nil && !failing:
			failing = true
			s.log.Warn().Err(err).Msg("partitions not looked at, keeping the ones at hand")
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *Sharer) aside(ctx context.Context) []int {
	if s.config.Aside == nil {
		return nil
	}
	attempt, cancel := context.WithTimeout(ctx, s.config.Announce)
	defer cancel()
	return s.config.Aside(attempt)
}

func (s *Sharer) announce(ctx context.Context, aside []int) error {
	attempt, cancel := context.WithTimeout(ctx, s.config.Announce)
	defer cancel()
	return s.roster.Announce(attempt, s.config.Member, aside, s.config.Present)
}

// look returns the picture, with this instance in it, whether or not its
// announcement is there yet.
func (s *Sharer) look(ctx context.Context, aside []int) (Picture, error) {
	attempt, cancel := context.WithTimeout(ctx, s.config.Announce)
	defer cancel()
	picture, err := s.roster.Picture(attempt)
	if err != nil {
		return Picture{}, err
	}
	picture.Members = append(picture.Members, s.config.Member)
	others := maps.Clone(picture.Aside)
	if others == nil {
		others = map[string][]int{}
	}
	others[s.config.Member] = aside
	picture.Aside = others
	return picture, nil
}

func (s *Sharer) withdraw(ctx context.Context) {
	attempt, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.Announce)
	defer cancel()
	if err := s.roster.Withdraw(attempt, s.config.Member); err != nil {
		s.log.Debug().Err(err).Msg("not withdrawn, the announcement ends by itself")
	}
}

// follow starts the campaigns that are wanted, and stops those that have not
// been for long enough.
func (s *Sharer) follow(ctx context.Context, group *errgroup.Group, running map[int]*campaign, wanted []int) {
	for partition, c := range running {
		select {
		case <-c.done:
			delete(running, partition)
			continue
		default:
		}
		if slices.Contains(wanted, partition) {
			c.strikes = 0
		} else if c.strikes++; c.strikes == patience {
			s.log.Info().Int("partition", partition).Msg("partition given up for another instance")
			c.stop()
		}
	}
	for _, partition := range wanted {
		if running[partition] == nil {
			running[partition] = s.start(ctx, group, partition)
		}
	}
}

func (s *Sharer) start(ctx context.Context, group *errgroup.Group, partition int) *campaign {
	work, stop := context.WithCancel(ctx)
	c := &campaign{stop: stop, done: make(chan struct{})}
	s.log.Info().Int("partition", partition).Msg("campaigning for a partition")
	group.Go(func() error {
		defer close(c.done)
		defer stop()
		err := s.run(work, partition)
		if err == nil || work.Err() != nil && errors.Is(err, context.Cause(work)) {
			return nil
		}
		return fmt.Errorf("partition %d: %w", partition, err)
	})
	return c
}
