package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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
		return build(ctx, root, dir, shipped)
	}
	return build(ctx, root, dir, shipped, "-ldflags", "-X main.version="+version)
}

// shipped is the package of the projector that is shipped.
const shipped = "./services/projector/cmd/projector"

// BuildOver is Build with some sources replaced by an overlay, as go build has it.
func BuildOver(ctx context.Context, root, dir, overlay string) (Binaries, error) {
	return BuildWith(ctx, root, dir, shipped, overlay)
}

// BuildWith is BuildOver with the program of another package for the projector; overlay
// may be empty.
func BuildWith(ctx context.Context, root, dir, projector, overlay string) (Binaries, error) {
	if overlay == "" {
		return build(ctx, root, dir, projector)
	}
	return build(ctx, root, dir, projector, "-overlay", overlay)
}

// Over is b with those programs built into dir that a source of the repository at root is a
// part of, which an overlay replaces.
func (b Binaries) Over(ctx context.Context, root, dir, overlay, source string) (Binaries, error) {
	var packages []string
	for service, path := range map[string]*string{"sandbox": &b.Sandbox, "publisher": &b.Publisher, "projector": &b.Projector} {
		own := "services/" + service + "/"
		if strings.HasPrefix(source, "services/") && !strings.HasPrefix(source, own) {
			continue
		}
		packages = append(packages, "./"+own+"cmd/"+service)
		*path = filepath.Join(dir, service)
	}
	slices.Sort(packages)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return b, fmt.Errorf("build: %w", err)
	}
	return b, goBuild(ctx, root, dir+string(filepath.Separator), []string{"-overlay", overlay}, packages...)
}

func build(ctx context.Context, root, dir, projector string, flags ...string) (Binaries, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Binaries{}, fmt.Errorf("build: %w", err)
	}
	programs := []string{"./services/sandbox/cmd/sandbox", "./services/publisher/cmd/publisher"}
	if projector == shipped {
		programs = append(programs, shipped)
	} else if err := goBuild(ctx, root, filepath.Join(dir, "projector"), flags, projector); err != nil {
		return Binaries{}, err
	}
	if err := goBuild(ctx, root, dir+string(filepath.Separator), flags, programs...); err != nil {
		return Binaries{}, err
	}
	return BinariesIn(dir)
}

func goBuild(ctx context.Context, root, to string, flags []string, packages ...string) error {
	args := slices.Concat([]string{"build", "-o", to}, flags, packages)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	// The workspace holds all of them, whatever the caller's shell says.
	cmd.Env = append(os.Environ(), "GOWORK=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %v in %s: %w\n%s", args, root, err, out)
	}
	return nil
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
