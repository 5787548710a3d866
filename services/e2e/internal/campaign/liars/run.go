package liars

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"changerelay/services/e2e/internal/campaign/modes"
	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
)

// Run tries the judge on the relay as it is and on each lie, in the workspace at
// root, and writes a line for each. It returns an error when something was found
// in the relay as it is, or when a lie was not found out or could not be built.
func Run(ctx context.Context, root string, seed uint64, lies []Lie, out io.Writer) error {
	dir, err := os.MkdirTemp("", "liars-")
	if err != nil {
		return fmt.Errorf("try the liars: %w", err)
	}
	defer os.RemoveAll(dir)
	as, err := cluster.Build(ctx, root, filepath.Join(dir, "bin"), "")
	if err != nil {
		return fmt.Errorf("try the liars: %w", err)
	}
	var errs []error
	for i, lie := range append(truths(lies), lies...) {
		place := filepath.Join(dir, fmt.Sprint(i))
		found, err := lie.try(ctx, root, place, as, seed)
		if err == nil {
			err = lie.judge(found)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		verdict := "found"
		switch {
		case err != nil:
			verdict = "MISSED"
			errs = append(errs, fmt.Errorf("%s: %w", lie.Name, err))
		case len(lie.Finds) == 0:
			verdict = "clean"
		}
		fmt.Fprintf(out, "%-7s %s\n", verdict, lie.Name)
		for _, f := range found {
			fmt.Fprintf(out, "        %8d %s\n", f.Count, f.Name)
		}
	}
	fmt.Fprintf(out, "%d lies, %d problems\n", len(lies), len(errs))
	return errors.Join(errs...)
}

// try builds the lie over the relay as it is, and runs it.
func (l Lie) try(ctx context.Context, root, dir string, as cluster.Binaries, seed uint64) ([]witness.Violation, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if l.Change.File != "" {
		overlay, err := l.Change.Overlay(root, dir)
		if err != nil {
			return nil, err
		}
		if as, err = as.Over(ctx, root, filepath.Join(dir, "bin"), overlay, l.Change.File); err != nil {
			return nil, err
		}
	}
	if l.Repairs {
		return tryRepaired(ctx, dir, as, seed)
	}
	return try(ctx, root, dir, as, seed, l.mode())
}

// mode is what the services are set to.
func (l Lie) mode() modes.Mode {
	if l.Documents != nil {
		return modes.Mode{}.OfDocuments(*l.Documents)
	}
	if l.Skips {
		return modes.Mode{Keyed: true}.Skipping("evaluate=skip")
	}
	return modes.Mode{Keyed: true}
}

// judge says whether all was found that must be; nothing else where that is
// nothing.
func (l Lie) judge(found []witness.Violation) error {
	has := func(name string) bool {
		return slices.ContainsFunc(found, func(f witness.Violation) bool { return f.Name == name })
	}
	var missed []string
	for _, name := range l.Finds {
		if !has(name) {
			missed = append(missed, name)
		}
	}
	switch {
	case len(missed) > 0:
		return fmt.Errorf("not found: %s", strings.Join(missed, ", "))
	case len(l.Finds) == 0 && len(found) > 0:
		return fmt.Errorf("found: %s %q", found[0].Name, found[0].Samples)
	}
	return nil
}
