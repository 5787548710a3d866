package watch

import (
	"context"
	"sync"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

// states is the history of the states of a collection's documents. Its methods are
// safe for concurrent use.
type states[T comparable] struct {
	run func(context.Context) error
	// after is the state that a write leaves behind one of before.
	after func(before T, w change) T

	mu      sync.Mutex // guards what follows
	last    map[string]T
	history []T
}

// openStates begins to watch a collection; writes before the call are not seen.
func openStates[T comparable](ctx context.Context, collection *mongo.Collection, after func(before T, w change) T) (*states[T], error) {
	s := newStates(after)
	run, err := follow(ctx, collection, s.add)
	if err != nil {
		return nil, err
	}
	s.run = run
	return s, nil
}

func newStates[T comparable](after func(before T, w change) T) *states[T] {
	return &states[T]{after: after, last: make(map[string]T)}
}

// Run gathers writes until ctx ends.
func (s *states[T]) Run(ctx context.Context) error { return s.run(ctx) }

// add notes a write, unless it leaves its document in the state that it was in.
func (s *states[T]) add(w change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := s.last[w.id()]
	state := s.after(before, w)
	if known && state == before {
		return
	}
	s.last[w.id()] = state
	s.history = append(s.history, state)
}

// History returns the documents' states so far, oldest first.
func (s *states[T]) History() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]T(nil), s.history...)
}
