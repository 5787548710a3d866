package chaos

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"

	"changerelay/services/e2e/internal/harness/clock"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/ingo"
	"changerelay/services/e2e/internal/harness/releases"
)

// buildMore builds what a campaign needs beside the programs of a place, and programs
// with a projection in Go in their place where the seed asks for it. Operators set no
// clock, and roll nothing back; a release has no such projection.
func (c *campaign) buildMore(ctx context.Context, place *cluster.Place) error {
	if c.cfg.Bin != "" || c.cfg.Operators != "" {
		return nil
	}
	under, err := clock.Overlay(ctx, filepath.Join(place.Root, ".run", "clock"))
	if err != nil {
		return err
	}
	if !c.cfg.mode().InGo {
		return errors.Join(c.buildClocks(ctx, place.Root, under), c.buildRelease(ctx, place.Root))
	}
	if place.Binaries, err = ingo.Build(ctx, place.Root, ""); err != nil {
		return err
	}
	c.clocked, err = ingo.Build(ctx, place.Root, under)
	return err
}

// buildRelease builds the last release, so that projectors can be rolled back to it;
// where it cannot, because the history is not there, nobody is.
func (c *campaign) buildRelease(ctx context.Context, root string) error {
	var err error
	c.release, err = releases.Last().Build(ctx, root)
	if errors.Is(err, releases.ErrNotHere) {
		c.release = cluster.Binaries{}
		c.say("NOT RUN: projectors of the last release: %v", err)
		return nil
	}
	return err
}

// rollBack stops a projector and starts it as the last release, which it is until
// something else restarts it. Publishers stay as they are: those of the first release
// do not carry every type that the campaign's events have.
func rollBack(ctx context.Context, c *campaign, rng *rand.Rand) (string, func(context.Context) error, error) {
	if c.release == (cluster.Binaries{}) {
		return "", nil, errNobody
	}
	n, release, err := c.process(ctx, rng, projector)
	if err != nil {
		return "", nil, err
	}
	ended, err := c.ask(n)
	if err != nil {
		release()
		return "", nil, err
	}
	return n.Name + " rolled back to release " + releases.Last().Name, func(ctx context.Context) error {
		defer release()
		if err := ended(ctx); err != nil {
			return err
		}
		return n.StartAs(c.release.Projector)
	}, nil
}
