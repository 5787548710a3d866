package chaos

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"strings"

	"changerelay/services/e2e/internal/harness/cluster"
)

// rebuildArgs are those of the command that builds a projection anew.
func (c *campaign) rebuildArgs(view string, more ...string) []string {
	return append([]string{"rebuild", "--projection", view, "--why", "chaos", "--publisher", c.repairs.publisher}, more...)
}

// rebuildProjection builds a projection anew, or goes on with it. The command is killed
// at the end, if it is not at its own, and a projector may be on the way.
func rebuildProjection(ctx context.Context, c *campaign, rng *rand.Rand) (string, func(context.Context) error, error) {
	view := c.rebuilt()
	release, free := c.take("rebuild of " + view)
	if !free {
		return "", nil, errNobody
	}
	n := c.cluster.Projectors[rng.IntN(c.cfg.Projectors)]
	args := c.rebuildArgs(view, "--rate", []string{"0", "1000"}[rng.IntN(2)], "--grace", []string{"0s", "2s", "1h"}[rng.IntN(3)])
	c.repairs.begin(view)
	running, kill := context.WithCancel(ctx)
	ended := make(chan error, 1)
	var output string
	go func() {
		var err error
		output, err = n.CommandIn(running, nil, args...)
		ended <- err
	}()
	what := strings.Join(args[:3], " ")
	if rng.IntN(4) == 0 {
		what += c.killBeside(ctx, killedProjector, projectorAt(rng.IntN(c.cfg.Projectors)))
	}
	return what, func(context.Context) error {
		defer release()
		var err error
		select {
		case err = <-ended:
		default:
			kill()
			err = errors.Join(errors.New("SIGKILL of the command"), <-ended)
		}
		kill()
		if err == nil {
			c.repairs.ended(view)
		}
		c.say("%s: %s", what, outcomeOf(output, err))
		return nil
	}, nil
}

// mostVersions bounds the versions of a projection in one run.
const mostVersions = 100

func projectorAt(i int) pick {
	return func(_ context.Context, c *campaign, _ *rand.Rand) *cluster.Node { return c.cluster.Projectors[i] }
}

// outcomeOf is the last that a command has printed.
func outcomeOf(output string, err error) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	last := lines[len(lines)-1]
	const most = 300
	if len(last) > most {
		last = last[:most]
	}
	if err != nil {
		return "not at its end: " + last
	}
	return last
}

// begin notes that a projection is being built anew, ended that it was.
func (r *repairs) begin(view string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun[view] = true
}

// ended also notes that what was damaged of it before is mended.
func (r *repairs) ended(view string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.begun, view)
	r.rebuilt[view]++
	maps.DeleteFunc(r.damaged, func(d document, _ string) bool { return d.view == view })
}

// cancelRebuild ends a rebuild with the old documents, which readers see then, also where
// they saw the new ones.
func cancelRebuild(ctx context.Context, c *campaign, rng *rand.Rand) (string, func(context.Context) error, error) {
	view := c.rebuilt()
	release, free := c.take("rebuild of " + view)
	if !free {
		return "", nil, errNobody
	}
	defer release()
	c.repairs.mu.Lock()
	begun := c.repairs.begun[view]
	c.repairs.mu.Unlock()
	if !begun {
		return "", nil, errNobody
	}
	output, err := c.cluster.Projectors[rng.IntN(c.cfg.Projectors)].CommandIn(ctx, nil, c.rebuildArgs(view, "--cancel")...)
	if err == nil {
		c.repairs.mu.Lock()
		delete(c.repairs.begun, view)
		c.repairs.mu.Unlock()
	}
	return "rebuild --cancel of " + view + ": " + outcomeOf(output, err), nil, nil
}
