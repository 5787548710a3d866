package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Binaries are the paths of the programs that a cluster runs.
type Binaries struct {
	Sandbox   string
	Publisher string
	Projector string
}

// BinariesIn returns the binaries of a directory, all of which must be there.
func BinariesIn(dir string) (Binaries, error) {
	b := Binaries{
		Sandbox:   filepath.Join(dir, "sandbox"),
		Publisher: filepath.Join(dir, "publisher"),
		Projector: filepath.Join(dir, "projector"),
	}
	var errs []error
	for _, path := range []string{b.Sandbox, b.Publisher, b.Projector} {
		if _, err := os.Stat(path); err != nil {
			errs = append(errs, fmt.Errorf("find binary: %w", err))
		}
	}
	return b, errors.Join(errs...)
}

// Build builds the three programs of the repository at root into dir. All go
// into one build, so what they share is compiled once. An empty version leaves
// the one that the source says.
func Build(ctx context.Context, root, dir, version string) (Binaries, error) {
	if version == "" {
		return build(ctx, root, dir)
	}
	return build(ctx, root, dir, "-ldflags", "-X main.version="+version)
}

// BuildOver is Build with some sources replaced by an overlay, as go build has it.
func BuildOver(ctx context.Context, root, dir, overlay string) (Binaries, error) {
	return build(ctx, root, dir, "-overlay", overlay)
}

func build(ctx context.Context, root, dir string, flags ...string) (Binaries, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Binaries{}, fmt.Errorf("build: %w", err)
	}
	args := append([]string{"build", "-o", dir + string(filepath.Separator)}, flags...)
	args = append(args, "./services/sandbox/cmd/sandbox", "./services/publisher/cmd/publisher", "./services/projector/cmd/projector")
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	// The workspace holds all three, whatever the caller's shell says.
	cmd.Env = append(os.Environ(), "GOWORK=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return Binaries{}, fmt.Errorf("go %v in %s: %w\n%s", args, root, err, out)
	}
	return BinariesIn(dir)
}

// Root returns the repository's root: the nearest directory at or above the
// working directory that holds go.work.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find repository: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find repository: no go.work here or above")
		}
		dir = parent
	}
}
