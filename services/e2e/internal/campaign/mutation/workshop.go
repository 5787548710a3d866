package mutation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"changerelay/services/e2e/internal/campaign/mutation/guard"
)

const (
	// maxRuns is how often the tests of a guard that is cut are run until one fails:
	// some meet the failure by the order of goroutines, which a loaded machine changes.
	maxRuns = 3
	// confirmed bounds how long tests may take that are run again where the first run with
	// the guard cut fails: most do so within seconds.
	confirmed = 30 * time.Second
	// limit is what the tests of one guard have beyond what they took with the guard in
	// place: without it some never end.
	limit = 2 * time.Minute
	// wholeLimit is for the tests of all guards of a package.
	wholeLimit = 30 * time.Minute
)

// workshop has the guards, and for each package of tests one program that can cut them
// all: to build it takes longer than to run the tests of a guard.
type workshop struct {
	root, dir string
	guards    []guard.Guard
	overlay   string
	switched  []bool
	packages  map[string]*tests
}

// tests are those of one package that are to notice something.
type tests struct {
	dir     string
	names   []string
	mu      sync.Mutex
	program string // cuts every guard that is switched
	intact  *outcome
}

func newWorkshop(ctx context.Context, root, dir string, guards []guard.Guard) (*workshop, error) {
	w := &workshop{root: root, dir: dir, guards: guards, packages: make(map[string]*tests)}
	build := []string{"build", "-overlay", filepath.Join(dir, "together.json")}
	for _, g := range guards {
		if w.packages[g.Package] == nil {
			w.packages[g.Package] = &tests{dir: filepath.Join(root, g.Package)}
		}
		t := w.packages[g.Package]
		t.names = append(t.names, g.Tests...)
		build = append(build, "./"+filepath.Dir(g.File))
	}
	// A cut that does not compile is found out by itself, and keeps none of the others.
	alone := make(map[int]bool)
	for {
		var err error
		if w.overlay, w.switched, err = guard.Together(root, dir, guards, alone); err != nil {
			return nil, err
		}
		cmd := goCommand(ctx, dir, build...)
		cmd.Dir = root
		says, failed := cmd.CombinedOutput()
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case failed == nil:
			return w, nil
		}
		blamed, err := guard.Blame(dir, string(says))
		if err == nil && len(blamed) == 0 {
			err = fmt.Errorf("build with a switch for each guard: %w\n%s", failed, says)
		}
		if err != nil {
			return nil, err
		}
		for _, i := range blamed {
			alone[i] = true
		}
	}
}

// ready builds the program of a package, and runs its tests with every guard in place.
func (w *workshop) ready(ctx context.Context, of string) (*tests, error) {
	t := w.packages[of]
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.intact != nil {
		return t, nil
	}
	program := filepath.Join(w.dir, filepath.Base(of)+strconv.Itoa(len(of))+".test")
	if err := w.build(ctx, of, w.overlay, program); err != nil {
		return nil, err
	}
	slices.Sort(t.names)
	intact, err := w.run(ctx, t, program, slices.Compact(t.names), "", wholeLimit)
	if err == nil && len(intact.failed) > 0 { // perhaps beside so many others only
		var again outcome
		again, err = w.run(ctx, t, program, intact.failed, "", wholeLimit)
		intact.failed = again.failed
		maps.Copy(intact.passed, again.passed)
	}
	if err != nil {
		return nil, err
	}
	t.program, t.intact = program, &intact
	return t, nil
}

// cut looks for a test that passes with a guard and fails without it.
func (w *workshop) cut(ctx context.Context, i int) (Result, error) {
	g := w.guards[i]
	t, err := w.ready(ctx, g.Package)
	if err != nil {
		return Result{}, err
	}
	allowed := limit
	for _, name := range g.Tests {
		took, passed := t.intact.passed[name]
		switch {
		case slices.Contains(t.intact.failed, name):
			return Result{}, fmt.Errorf("%s fails with the guard in place", name)
		case !passed:
			return Result{}, fmt.Errorf("%s has no test %s", g.Package, name)
		}
		allowed += took
	}
	program, green := t.program, 0
	if w.switched[i] {
		again := func(names []string) (outcome, error) { return w.run(ctx, t, program, names, strconv.Itoa(i), allowed) }
		began := time.Now()
		without, err := again(g.Tests)
		if err == nil && len(without.failed) > 0 && time.Since(began) < confirmed {
			err = w.confirm(ctx, t, again, without.failed, 0, allowed)
		}
		if err != nil && !errors.Is(err, errOnce) || err == nil && len(without.failed) > 0 {
			return Result{Red: without.failed, Late: without.late}, err
		}
		green++ // a process that a test begins may not know of the switch, or it was chance
	}
	program, remove, err := w.alone(ctx, i)
	if err != nil {
		return Result{}, err
	}
	defer remove()
	alone := func(names []string) (outcome, error) { return w.run(ctx, t, program, names, "", allowed) }
	for range maxRuns {
		began := time.Now()
		without, err := alone(g.Tests)
		if err == nil && len(without.failed) > 0 && (green > 0 || time.Since(began) < confirmed) {
			err = w.confirm(ctx, t, alone, g.Tests, green, allowed)
		}
		if err != nil || len(without.failed) > 0 {
			return Result{Red: without.failed, Late: without.late, Green: green}, err
		}
		green++
	}
	return Result{Green: green}, errGreen
}

// confirm says whether tests that fail with a guard cut, after runs that were green, fail
// for that: with the guard in place they pass as often as it took, and with it cut they
// fail once more. A test that fails now and then does so with any cut. The error is errOnce
// where they did not fail again.
func (w *workshop) confirm(ctx context.Context, t *tests, cut func(names []string) (outcome, error), names []string, green int, allowed time.Duration) error {
	for range green + 1 {
		intact, err := w.run(ctx, t, t.program, names, "", allowed)
		if err != nil {
			return err
		}
		if len(intact.failed) > 0 {
			return fmt.Errorf("%w: %s fails with it, too", errGreen, intact.failed[0])
		}
	}
	for range maxRuns {
		without, err := cut(names)
		if err != nil || len(without.failed) > 0 {
			return err
		}
	}
	return errOnce
}

// alone builds a program in which one guard is cut.
func (w *workshop) alone(ctx context.Context, i int) (program string, remove func(), err error) {
	dir, err := os.MkdirTemp(w.dir, "")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	overlay, err := w.guards[i].Overlay(w.root, dir)
	if err == nil {
		program = filepath.Join(dir, "alone.test")
		err = w.build(ctx, w.guards[i].Package, overlay, program)
	}
	if err != nil {
		remove()
		return "", nil, err
	}
	return program, remove, nil
}
