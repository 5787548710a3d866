package watch

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/e2e/internal/check/validate"
)

// Checkpoints is the history of a publisher's checkpoints. Its methods are safe
// for concurrent use.
type Checkpoints = states[validate.Checkpoint]

// OpenCheckpoints begins to watch the collection of checkpoints; writes before
// the call are not seen. Who has claimed a term before is known all the same, for what
// is saved in it from here on does not name it.
func OpenCheckpoints(ctx context.Context, collection *mongo.Collection) (*Checkpoints, error) {
	c, err := openStates(ctx, collection, checkpointAfter)
	if err != nil {
		return nil, err
	}
	var claimed []struct {
		ID    any `bson:"_id"`
		Owner string
		Term  int64
	}
	there, err := collection.Find(ctx, bson.D{})
	if err == nil {
		err = there.All(ctx, &claimed)
	}
	if err != nil {
		return nil, fmt.Errorf("read who has claimed the terms in %s: %w", collection.Name(), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range claimed {
		if stream, named := of.ID.(string); named {
			c.last[stream] = validate.Checkpoint{Stream: stream, Owner: of.Owner, Term: of.Term}
		}
	}
	return c, nil
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
		if position, _ := v.StringValueOK(); position != state.Position {
			state.Position, state.At = position, w.at()
		}
	}
	return state
}
