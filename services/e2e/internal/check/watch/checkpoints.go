package watch

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/e2e/internal/check/validate"
)

// Checkpoints is the history of a publisher's checkpoints. Its methods are safe
// for concurrent use.
type Checkpoints = states[validate.Checkpoint]

// OpenCheckpoints begins to watch the collection of checkpoints; writes before
// the call are not seen.
func OpenCheckpoints(ctx context.Context, collection *mongo.Collection) (*Checkpoints, error) {
	return openStates(ctx, collection, checkpointAfter)
}

// checkpointAfter is a checkpoint after a write. A field that the write leaves alone
// keeps its value.
func checkpointAfter(state validate.Checkpoint, w change) validate.Checkpoint {
	state.Stream = w.id()
	if v, found := w.field("", "owner"); found {
		state.Owner, _ = v.StringValueOK()
	}
	if v, found := w.field("", "term"); found {
		state.Term, _ = v.AsInt64OK()
	}
	if v, found := w.field("", "position"); found {
		state.Position, _ = v.StringValueOK()
	}
	return state
}
