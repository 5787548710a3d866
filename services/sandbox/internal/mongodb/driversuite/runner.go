package driversuite

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// runner runs units and collects what their tests did.
type runner struct {
	config   Config
	binaries map[string]binary
	recorded Results
	known    Known

	mu   sync.Mutex // guards seen and the progress writer
	seen Results
	// again is how often tests were run again.
	again map[Test]int
}

// attempts is how often a test runs at most until it does as recorded.
const attempts = 4

// all runs the units side by side, and then again, one by one, the tests that
// differ.
func (r *runner) all(ctx context.Context, units []unit) error {
	group, side := errgroup.WithContext(ctx)
	group.SetLimit(r.config.Jobs)
	for _, u := range units {
		group.Go(func() error { return r.run(side, u, u.arguments(), false) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, u := range units {
		for attempt := 1; attempt < attempts; attempt++ {
			differing := r.differing(u)
			if len(differing) == 0 {
				break
			}
			for _, test := range differing {
				r.again[test]++
			}
			if err := r.run(ctx, u, argumentsFor(differing), true); err != nil {
				return err
			}
		}
	}
	return nil
}

// run runs tests of a unit.
func (r *runner) run(ctx context.Context, u unit, arguments []string, ahead bool) error {
	began := time.Now()
	output, err := runProcess(ctx, r.binaries[u.pkg], arguments, ahead)
	if err != nil {
		return fmt.Errorf("run %s: %w", u, err)
	}
	if r.config.Logs != "" {
		if err := keepOutput(r.config.Logs, u, output); err != nil {
			return err
		}
	}
	results := parseOutput(u.pkg, output)
	r.mu.Lock()
	for test, verdict := range results {
		if in, ok := unitOf(test); ok && in == u {
			r.seen[test] = verdict
		}
	}
	r.mu.Unlock()
	differ := len(r.differing(u))
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.config.Progress, "%-72s %5.1fs  %d differ\n", u, time.Since(began).Seconds(), differ)
	return nil
}

// differing are the tests of a unit that differ and hold no others that do.
func (r *runner) differing(u unit) []Test {
	r.mu.Lock()
	seen := maps.Clone(r.seen)
	r.mu.Unlock()
	all := newReport([]unit{u}, r.recorded, seen, r.known).Differences
	var lowest []Test
	for _, d := range all {
		holds := false
		for _, other := range all {
			holds = holds || other.Test.under(d.Test)
		}
		if !holds {
			lowest = append(lowest, d.Test)
		}
	}
	return lowest
}
