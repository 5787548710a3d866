// Package ingo builds programs whose projector has a projection that is written in Go
// beside those that PROJECTIONS declares: a program of its own, as a user has one. A group
// with a name (READMODEL_GROUP) has none.
package ingo

import (
	"context"
	"path/filepath"

	"changerelay/services/e2e/internal/harness/cluster"
)

// Collection is where the projection has its documents.
const Collection = "steps"

// projector is the package of the projector, in the workspace.
const projector = "./services/projector/example/steps"

// Build builds the programs of the repository at root with the projection. Sources are
// replaced by an overlay, as go build has it; without one it is empty.
func Build(ctx context.Context, root, overlay string) (cluster.Binaries, error) {
	name := "plain"
	if overlay != "" {
		name = "over"
	}
	return cluster.BuildWith(ctx, root, filepath.Join(root, ".run", "in-go", name), projector, overlay)
}
