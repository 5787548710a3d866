// Package releases knows the releases of this repository, and builds their programs
// from its history, to run them beside those of today.
package releases

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"changerelay/services/e2e/internal/harness/cluster"
)

// Release is a state of the repository that was given out.
type Release struct {
	// Name is the day of the release.
	Name string
	// Commit is its full hash.
	Commit string
}

// All are the releases, the oldest first. A release is added here when it is made.
var All = []Release{
	{Name: "2026-11-22", Commit: "a36ae180ef0279d17513a867ac25101722bf42e2"},
}

// Last is the release that a deployment is upgraded from.
func Last() Release { return All[len(All)-1] }

// ErrNotHere says that the repository's history does not reach back to a release,
// as in a shallow clone, or is not there.
var ErrNotHere = errors.New("not in this repository's history")

// Build builds the release's programs from the history of the repository at root,
// below .run, unless they are there. It returns ErrNotHere where it cannot.
func (r Release) Build(ctx context.Context, root string) (cluster.Binaries, error) {
	place := filepath.Join(root, ".run", "releases", r.Commit)
	if b, err := cluster.BinariesIn(place); err == nil {
		return b, nil
	}
	if err := git(ctx, root, nil, "cat-file", "-e", r.Commit+"^{commit}"); err != nil {
		return cluster.Binaries{}, fmt.Errorf("release %s: commit %s: %w: %w", r.Name, r.Commit, ErrNotHere, err)
	}
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		return cluster.Binaries{}, fmt.Errorf("build release %s: %w", r.Name, err)
	}
	// Two builds may go on at once: each has a directory of its own until it is done.
	dir, err := os.MkdirTemp(filepath.Dir(place), "building-")
	if err != nil {
		return cluster.Binaries{}, fmt.Errorf("build release %s: %w", r.Name, err)
	}
	defer os.RemoveAll(dir)
	if err := r.build(ctx, root, dir); err != nil {
		return cluster.Binaries{}, fmt.Errorf("build release %s: %w", r.Name, err)
	}
	moved := os.Rename(filepath.Join(dir, "bin"), place)
	b, err := cluster.BinariesIn(place)
	if err != nil {
		return b, errors.Join(moved, err)
	}
	return b, nil
}

// build checks the release out into dir, apart from the repository's own files and
// index, and builds it.
func (r Release) build(ctx context.Context, root, dir string) error {
	source := filepath.Join(dir, "source")
	if err := os.Mkdir(source, 0o755); err != nil {
		return err
	}
	own := []string{"GIT_INDEX_FILE=" + filepath.Join(dir, "index")}
	if err := git(ctx, root, own, "--work-tree="+source, "read-tree", r.Commit); err != nil {
		return err
	}
	if err := git(ctx, root, own, "--work-tree="+source, "checkout-index", "--all"); err != nil {
		return err
	}
	_, err := cluster.Build(ctx, source, filepath.Join(dir, "bin"), r.Name)
	return err
}

func git(ctx context.Context, root string, env []string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %v: %w: %s", args, err, out)
	}
	return nil
}
