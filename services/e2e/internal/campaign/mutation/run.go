package mutation

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"changerelay/services/e2e/internal/campaign/mutation/guard"
	"changerelay/services/e2e/internal/campaign/mutation/projector"
	"changerelay/services/e2e/internal/campaign/mutation/publisher"
	"changerelay/services/e2e/internal/campaign/mutation/sandbox"
	"changerelay/services/e2e/internal/campaign/mutation/witness"
)

// Guards are the guards of both services, some of the sandbox and some of the witness.
func Guards() []guard.Guard {
	return slices.Concat(publisher.Guards(), projector.Guards(), sandbox.Guards(), witness.Guards())
}

// errGreen is a guard that nothing stands for.
var errGreen = errors.New("no test fails without it")

// Run cuts each guard, in the workspace at root, so many at once, and writes a line for
// each. It returns an error when a guard has no test that fails without it, or
// could not be cut.
func Run(ctx context.Context, root string, guards []guard.Guard, atOnce int, out io.Writer) error {
	whole := newIntact(root, guards)
	missed := make([]error, len(guards))
	var mu sync.Mutex // guards out
	var cuts errgroup.Group
	cuts.SetLimit(atOnce)
	for i, g := range guards {
		cuts.Go(func() error {
			red, green, err := red(ctx, g, root, whole)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				missed[i] = fmt.Errorf("%s: %w", g.Name, err)
				fmt.Fprintf(out, "MISSED  %s: %v\n", g.Name, err)
				return nil
			}
			fmt.Fprintf(out, "red     %s\n          %s\n", g.Name, strings.Join(red, ", "))
			if green > 0 {
				fmt.Fprintf(out, "          after %d runs that were green\n", green)
			}
			return nil
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

// intact is what becomes of the tests of guards with every guard in place. Those of one
// package are run once for all of its guards.
type intact map[string]func(context.Context) (outcome, error)

func newIntact(root string, guards []guard.Guard) intact {
	tests := make(map[string][]string)
	for _, g := range guards {
		tests[g.Package] = append(tests[g.Package], g.Tests...)
	}
	runs := make(intact)
	for name, of := range tests {
		slices.Sort(of)
		g := guard.Guard{Package: name, Tests: slices.Compact(of)}
		var mu sync.Mutex
		var done *outcome
		runs[name] = func(ctx context.Context) (outcome, error) {
			mu.Lock()
			defer mu.Unlock()
			if done != nil {
				return *done, nil
			}
			whole, err := test(ctx, root, g, "")
			if err == nil {
				done = &whole
			}
			return whole, err
		}
	}
	return runs
}

// maxRuns is how often the tests of a guard that is cut are run until one fails:
// some meet the failure by the order of goroutines, which a loaded machine changes.
const maxRuns = 3

// red returns the tests that pass with the guard and fail without it, and how many
// runs without it had noticed nothing before.
func red(ctx context.Context, g guard.Guard, root string, intact intact) (failed []string, green int, err error) {
	whole, err := intact[g.Package](ctx)
	if err != nil {
		return nil, 0, err
	}
	for _, name := range g.Tests {
		if slices.Contains(whole.failed, name) {
			return nil, 0, fmt.Errorf("%s fails with the guard in place", name)
		}
		if !slices.Contains(whole.passed, name) {
			return nil, 0, fmt.Errorf("%s has no test %s", g.Package, name)
		}
	}
	dir, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay, err := g.Overlay(root, dir)
	if err != nil {
		return nil, 0, err
	}
	for green = range maxRuns {
		cut, err := test(ctx, root, g, overlay)
		if err != nil || len(cut.failed) > 0 {
			return cut.failed, green, err
		}
	}
	return nil, maxRuns, errGreen
}

// timeLimit is for the tests of one guard: without it some never end.
const timeLimit = "2m"

// wholeLimit is for the tests of all guards of a package.
const wholeLimit = "15m"

// outcome is what became of the top-level tests of a run.
type outcome struct{ passed, failed []string }

// test runs a guard's tests. It is an error when they could not be run.
func test(ctx context.Context, root string, g guard.Guard, overlay string) (outcome, error) {
	// What vet has to say is said elsewhere, and takes as long as the tests do.
	args := []string{"test", "-json", "-vet=off", "-timeout", timeLimit, "-run", "^(" + strings.Join(g.Tests, "|") + ")$"}
	if overlay == "" {
		args[4] = wholeLimit
	} else {
		args = append(args, "-overlay", overlay, "-count=1")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+g.Package)...)
	cmd.Dir = root
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	failed := cmd.Run()
	result, err := read(&stdout, &stderr)
	if err != nil {
		return outcome{}, err
	}
	// A test that never came to its end, by a panic or the time limit, has failed.
	if failed != nil && len(result.failed) == 0 {
		return outcome{}, fmt.Errorf("run its tests: %w\n%s", failed, stderr.Bytes())
	}
	return result, nil
}

// read takes the outcome from what `go test -json` prints. What the compiler has
// to say goes to complaints.
func read(stdout io.Reader, complaints io.Writer) (outcome, error) {
	var result outcome
	var running []string
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var event struct{ Action, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			continue
		}
		if event.Action == "build-output" {
			fmt.Fprint(complaints, event.Output)
		}
		if event.Test == "" || strings.Contains(event.Test, "/") {
			continue
		}
		switch event.Action {
		case "run":
			running = append(running, event.Test)
			continue
		case "pass":
			result.passed = append(result.passed, event.Test)
		case "fail":
			result.failed = append(result.failed, event.Test)
		default:
			continue
		}
		running = slices.DeleteFunc(running, func(name string) bool { return name == event.Test })
	}
	result.failed = append(result.failed, running...)
	return result, lines.Err()
}
