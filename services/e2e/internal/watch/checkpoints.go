package watch

import (
	"context"
	"sync"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/e2e/internal/validate"
)

// Checkpoints is the history of a publisher's checkpoints. Its methods are safe
// for concurrent use.
type Checkpoints struct {
	run func(context.Context) error

	mu      sync.Mutex // guards what follows
	last    map[string]validate.Checkpoint
	history []validate.Checkpoint
}

// OpenCheckpoints begins to watch the collection of checkpoints; writes before
// the call are not seen.
func OpenCheckpoints(ctx context.Context, collection *mongo.Collection) (*Checkpoints, error) {
	c := &Checkpoints{last: make(map[string]validate.Checkpoint)}
	run, err := follow(ctx, collection, c.add)
	if err != nil {
		return nil, err
	}
	c.run = run
	return c, nil
}

// Run gathers writes until ctx ends.
func (c *Checkpoints) Run(ctx context.Context) error { return c.run(ctx) }

// add notes a write. A field that a write leaves alone keeps its value.
func (c *Checkpoints) add(w change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := c.last[w.id()]
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
	if state == c.last[w.id()] {
		return
	}
	c.last[w.id()] = state
	c.history = append(c.history, state)
}

// History returns the checkpoint's states so far, oldest first.
func (c *Checkpoints) History() []validate.Checkpoint {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]validate.Checkpoint(nil), c.history...)
}
