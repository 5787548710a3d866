package mutation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"changerelay/services/e2e/internal/campaign/mutation/guard"
	"changerelay/services/e2e/internal/campaign/mutation/projector"
	"changerelay/services/e2e/internal/campaign/mutation/publisher"
	"changerelay/services/e2e/internal/campaign/mutation/sandbox"
	"changerelay/services/e2e/internal/campaign/mutation/witness"
)

// Guards are the guards of both services, some of the sandbox, of the witness and of campaigns.
func Guards() []guard.Guard {
	return slices.Concat(publisher.Guards(), projector.Guards(), sandbox.Guards(), sandbox.Commands(), witness.Guards(), witness.Campaigns(), witness.Repairs(), witness.Judging(), witness.Forgiving(), witness.Causes())
}

// errGreen is a guard that nothing stands for.
var errGreen = errors.New("no test fails without it")

// errOnce is one whose tests failed in one run of several.
var errOnce = fmt.Errorf("%w: but for one run", errGreen)

// Result is what came of cutting one guard.
type Result struct {
	Guard string `json:"guard"`
	// Of is a hash of the cut and of what its tests are built from.
	Of string `json:"of,omitempty"`
	// Red are tests that fail without the guard; Green is how many runs had noticed nothing before.
	Red   []string `json:"red,omitempty"`
	Green int      `json:"green,omitempty"`
	// Late is whether they failed by not coming to their end.
	Late bool `json:"late,omitempty"`
	// Problem is why no test stands for the guard.
	Problem string  `json:"problem,omitempty"`
	Seconds float64 `json:"seconds"`
}

// Run cuts each guard, in the workspace at root, so many at once, writes a line for
// each, and gives each result to keep, one at a time. It returns an error when a guard
// has no test that fails without it, or could not be cut.
func Run(ctx context.Context, root string, guards []guard.Guard, atOnce int, out io.Writer, keep func(Result) error) error {
	dir, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	shop, err := newWorkshop(ctx, root, dir, guards)
	if err != nil {
		return err
	}
	missed := make([]error, len(guards))
	var mu sync.Mutex // guards out and keep
	cuts, ctx := errgroup.WithContext(ctx)
	cuts.SetLimit(atOnce)
	for i, g := range guards {
		cuts.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			began := time.Now()
			result, err := shop.cut(ctx, i)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			result.Guard, result.Seconds = g.Name, time.Since(began).Seconds()
			if err != nil {
				missed[i] = fmt.Errorf("%s: %w", g.Name, err)
				result.Problem = err.Error()
			}
			mu.Lock()
			defer mu.Unlock()
			result.print(out)
			return keep(result)
		})
	}
	if err := cuts.Wait(); err != nil {
		return err
	}
	count := 0
	for _, err := range missed {
		if err != nil {
			count++
		}
	}
	fmt.Fprintf(out, "%d guards, %d without a test that fails\n", len(guards), count)
	return errors.Join(missed...)
}

func (r Result) print(out io.Writer) {
	if r.Problem != "" {
		fmt.Fprintf(out, "MISSED  %s: %s\n", r.Guard, r.Problem)
		return
	}
	fmt.Fprintf(out, "red     %s\n          %s\n", r.Guard, strings.Join(r.Red, ", "))
	if r.Green > 0 {
		fmt.Fprintf(out, "          after %d runs that were green\n", r.Green)
	}
}
