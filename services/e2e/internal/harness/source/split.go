package source

import (
	"context"
	"strings"

	"changerelay/services/e2e/internal/harness/orders"
)

// Split writes events into several collections of a database, all of an aggregate into the
// same one. It may be used by one goroutine at a time.
type Split struct {
	// Of is the collection of an aggregate.
	Of func(aggregate string) string
	// To makes the writer into a collection.
	To func(collection string) *Writer

	writers map[string]*Writer
}

// Insert writes the events of each collection in order, and returns when the majority has
// all of them.
func (s *Split) Insert(ctx context.Context, events []orders.Event) error {
	var names []string
	parts := make(map[string][]orders.Event)
	for _, e := range events {
		name := s.Of(e.Aggregate)
		if parts[name] == nil {
			names = append(names, name)
		}
		parts[name] = append(parts[name], e)
	}
	for _, name := range names {
		if err := s.writer(name).Insert(ctx, parts[name]); err != nil {
			return err
		}
	}
	return nil
}

// Take is Writer.Take of all collections.
func (s *Split) Take(ctx context.Context, ids []string) ([]Stored, error) {
	parts := make(map[string][]string)
	for _, id := range ids {
		name := s.Of(id[:max(strings.LastIndexByte(id, '/'), 0)])
		parts[name] = append(parts[name], id)
	}
	var taken []Stored
	for name, ids := range parts {
		events, err := s.writer(name).Take(ctx, ids)
		taken = append(taken, events...)
		if err != nil {
			return taken, err
		}
	}
	return taken, nil
}

func (s *Split) writer(collection string) *Writer {
	if s.writers == nil {
		s.writers = make(map[string]*Writer)
	}
	if s.writers[collection] == nil {
		s.writers[collection] = s.To(collection)
	}
	return s.writers[collection]
}
