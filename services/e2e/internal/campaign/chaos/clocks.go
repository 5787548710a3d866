package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"changerelay/services/e2e/internal/harness/clock"
	"changerelay/services/e2e/internal/harness/cluster"
)

// How wrong a clock may be. The servers' is what leases are judged by: as long as
// it is behind, a lease lasts longer.
const (
	servicesWrong = 2 * time.Hour
	serversWrong  = 5 * time.Second
	// steadyClock bounds how long a clock is wrong by the same amount.
	steadyClock = 20 * time.Second
)

// buildClocks builds the programs a second time, so that their clocks can be set
// wrong, over what an overlay replaces. They run only where that is done; all else is done to those that ship.
func (c *campaign) buildClocks(ctx context.Context, root, overlay string) (err error) {
	c.clocked, err = cluster.BuildOver(ctx, root, filepath.Join(root, ".run", "bin-clock"), overlay)
	return err
}

func wrong(rng *rand.Rand, by time.Duration) clock.Wrong {
	draw := func() time.Duration { return time.Duration(rng.Int64N(int64(2*by))) - by }
	return clock.Wrong{Ahead: draw().Truncate(time.Second), Then: draw().Truncate(time.Second), After: time.Duration(rng.Int64N(int64(steadyClock)))}
}

// setClock restarts a service with a wrong clock, which it has until something
// else restarts it.
func setClock(who pick) func(context.Context, *campaign, *rand.Rand) (string, func(context.Context) error, error) {
	return func(ctx context.Context, c *campaign, rng *rand.Rand) (string, func(context.Context) error, error) {
		if c.clocked == (cluster.Binaries{}) {
			return "", nil, errNobody
		}
		n, release, err := c.process(ctx, rng, who)
		if err != nil {
			return "", nil, err
		}
		defer release()
		binary := c.clocked.Projector
		if n.Binary() == c.binaries.Publisher {
			binary = c.clocked.Publisher
		}
		w := wrong(rng, servicesWrong)
		n.Kill()
		return fmt.Sprintf("clock of %s ahead by %v, and after %.0f s by %v", n.Name, w.Ahead, w.After.Seconds(), w.Then), nil,
			n.StartAs(binary, w.Environment()...)
	}
}

// setServersClock restarts the servers with a clock that is wrong by seconds.
func setServersClock(_ context.Context, c *campaign, rng *rand.Rand) (string, func(context.Context) error, error) {
	if c.clocked == (cluster.Binaries{}) {
		return "", nil, errNobody
	}
	release, free := c.take(c.cluster.Sandbox.Name)
	if !free {
		return "", nil, errNobody
	}
	w := wrong(rng, serversWrong)
	c.cluster.Sandbox.Kill()
	return fmt.Sprintf("clock of the servers ahead by %v, and after %.0f s by %v", w.Ahead, w.After.Seconds(), w.Then), func(ctx context.Context) error {
		defer release()
		return c.restart(ctx, c.clocked.Sandbox, w.Environment()...)
	}, nil
}
