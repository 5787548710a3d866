// Package ingo builds programs whose projector has a projection that is written in Go
// beside those that PROJECTIONS declares. A group with a name (READMODEL_GROUP) has none.
package ingo

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"changerelay/services/e2e/internal/harness/cluster"
)

// Collection is where the projection has its documents.
const Collection = "steps"

//go:embed steps.go.txt
var steps string

const (
	loader = "services/projector/internal/config/config.go"
	loaded = "return projection.LoadAll(paths)"
	added  = "return projection.WithSteps(c.Group, projection.LoadAll, paths)"
	adding = `
// WithSteps adds a projection to those that are declared, but for a named group: a
// collection is one group's.
func WithSteps(group string, load func([]string) (Projections, error), paths []string) (Projections, error) {
	declared, err := load(paths)
	if group == "" {
		declared = append(declared, steps{})
	}
	return declared, err
}
`
)

// Build builds the programs of the repository at root with the projection.
func Build(ctx context.Context, root string) (cluster.Binaries, error) {
	dir := filepath.Join(root, ".run", "in-go")
	overlay, err := Overlay(root, dir, "")
	if err != nil {
		return cluster.Binaries{}, err
	}
	return cluster.BuildOver(ctx, root, filepath.Join(dir, "bin"), overlay)
}

// Overlay writes into dir what a build of the repository at root needs, and returns the
// file for the -overlay flag of go build. What another overlay replaces is replaced, too;
// under is empty for none.
func Overlay(root, dir, under string) (string, error) {
	replace := make(map[string]string)
	if under != "" {
		text, err := os.ReadFile(under)
		if err != nil {
			return "", fmt.Errorf("add a projection in Go: %w", err)
		}
		var other struct{ Replace map[string]string }
		if err := json.Unmarshal(text, &other); err != nil {
			return "", fmt.Errorf("add a projection in Go: %s: %w", under, err)
		}
		maps.Copy(replace, other.Replace)
	}
	original := filepath.Join(root, loader)
	text, err := os.ReadFile(original)
	if err != nil {
		return "", fmt.Errorf("add a projection in Go: %w", err)
	}
	if n := strings.Count(string(text), loaded); n != 1 {
		return "", fmt.Errorf("add a projection in Go: %s has %d lines %q, want 1: it reads the declared ones in another way", original, n, loaded)
	}
	config, source, list := filepath.Join(dir, "config.go"), filepath.Join(dir, "steps.go"), filepath.Join(dir, "overlay.json")
	replace[original] = config
	replace[filepath.Join(root, "services/projector/internal/projection/steps.go")] = source
	whole, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	return list, errors.Join(err,
		os.MkdirAll(dir, 0o755),
		os.WriteFile(config, []byte(strings.Replace(string(text), loaded, added, 1)), 0o600),
		os.WriteFile(source, []byte(steps+adding), 0o600),
		os.WriteFile(list, whole, 0o600),
	)
}
