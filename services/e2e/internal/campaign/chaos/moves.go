package chaos

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"changerelay/services/e2e/internal/harness/cluster"
)

// moveAllProjectors moves the projectors to another subscription and back, with the
// command killed on the way, while nothing else happens to them.
func moveAllProjectors(ctx context.Context, c *campaign, rng *rand.Rand) (string, func(context.Context) error, error) {
	var releases []func()
	releaseAll := func() {
		for _, release := range releases {
			release()
		}
	}
	own := c.cluster.Projectors[:c.cfg.Projectors]
	for _, n := range own {
		release, free := c.take(n.Name)
		if !free {
			releaseAll()
			return "", nil, errNobody
		}
		releases = append(releases, release)
	}
	killed := time.Duration(rng.IntN(300)) * time.Millisecond
	c.witness.MayMove(elsewhere)
	moved, err := c.moveKilled(ctx, own, killed, "SERVICEBUS_SUBSCRIPTION="+elsewhere)
	if err != nil || !moved {
		releaseAll()
		return "projectors are not moved: one was killed just now", nil, err
	}
	return "projectors moved to another subscription", func(ctx context.Context) error {
		defer releaseAll()
		if moved, err := c.moveKilled(ctx, own, killed); err != nil || !moved {
			c.wrong("the projectors cannot be moved back: %v", err)
			return err
		}
		return nil
	}, nil
}

// moveKilled moves projectors, with the command killed after a while and run again. Where
// it is refused since one of them was killed not long ago it is false on the way there;
// on the way back, which has to be, it waits.
func (c *campaign) moveKilled(ctx context.Context, nodes []*cluster.Node, after time.Duration, env ...string) (bool, error) {
	for _, n := range nodes {
		if err := c.halt(ctx, n); err != nil {
			return false, err
		}
	}
	killed, cancel := context.WithTimeout(ctx, after)
	_, _ = nodes[0].CommandIn(killed, env, "move", "--leave-messages")
	cancel()
	output, err := c.moveStopped(ctx, nodes[0], func(output string) bool { return len(env) == 0 || !killedBefore(output) }, env)
	if err != nil && !killedBefore(output) {
		c.wrong("move with %q, and all projectors stopped: %s", env, firstLine(output))
	}
	if err != nil {
		env = nil // they are where they were
	}
	for _, n := range nodes {
		if err := n.StartAs(n.Binary(), env...); err != nil {
			return false, err
		}
	}
	return err == nil, nil
}

// moveStopped moves projectors that are stopped, and tries again where it is refused and
// patient says so of what was said.
func (c *campaign) moveStopped(ctx context.Context, n *cluster.Node, patient func(output string) bool, env []string) (output string, err error) {
	for range moveTries {
		output, err = n.CommandIn(ctx, env, "move", "--leave-messages")
		if err == nil || ctx.Err() != nil || !patient(output) {
			break
		}
		c.say("move with %q: %s", env, firstLine(output))
		sleepUntil(ctx, time.Now().Add(time.Second))
	}
	return output, err
}

// moveTries is how often a move is tried: servers may be away for some seconds, and whoever
// did not stop in time counts for 45 more.
const moveTries = 90

// killedBefore tells that a move is refused since a projector may still live.
func killedBefore(output string) bool { return strings.Contains(output, "were killed less than") }
