package speed

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"changerelay/services/e2e/internal/stage"
)

// Config says what a comparison does.
type Config struct {
	// Open sets up the servers of one measurement.
	Open func(context.Context, ...stage.Topic) (*stage.Stage, error)
	// Events of Aggregates are waiting in the source.
	Events, Aggregates int
	// Farther is how much farther the broker is.
	Farther time.Duration
	// Plain is how long the plain loop runs.
	Plain time.Duration
}

// Rate is one measurement.
type Rate struct {
	PerSecond float64
	// Client is the processor time of the one who worked, for an event.
	Client time.Duration
	// Memory is the most that publishers had resident, in bytes; 0 for others.
	Memory int64
	// Growth is the processor time of an event of the last tenth, over that of one of
	// the first; 0 where that is not known.
	Growth float64
}

// Comparison is what one repetition measured.
type Comparison struct {
	Driver, Plain Rate
	// Batches are the measurements by BATCHING.
	Batches []Batches
}

// Batches compares the publisher with the bare SDK that sends the same batches.
type Batches struct {
	Batching       string
	SDK, Publisher Rate
}

// shape is a way to put events in batches.
type shape struct {
	batching string
	// bareSenders is how many sends the bare SDK has under way: about as many as
	// the publisher's SENDERS and MAX_IN_FLIGHT let it have.
	bareSenders int
	batches     func([]event) iter.Seq[[]event]
}

var shapes = []shape{
	{batching: "session", bareSenders: 256, batches: bySession},
	{batching: "mixed", bareSenders: 32, batches: mixed},
}

// Compare measures every way. Each limit is followed by what it bounds.
func Compare(ctx context.Context, c Config) (Comparison, error) {
	var all Comparison
	var read []event
	var err error
	all.Driver, err = c.measure(ctx, func(ctx context.Context, s *site) (t took, err error) {
		t, read, err = s.drain(ctx)
		return t, err
	})
	if err != nil {
		return all, fmt.Errorf("bare driver: %w", err)
	}
	for _, shape := range shapes {
		b := Batches{Batching: shape.batching}
		b.SDK, err = c.measure(ctx, func(ctx context.Context, s *site) (took, error) {
			return s.send(ctx, shape.bareSenders, slices.Collect(shape.batches(read)))
		})
		if err != nil {
			return all, fmt.Errorf("bare SDK, %s batches: %w", shape.batching, err)
		}
		b.Publisher, err = c.measure(ctx, func(ctx context.Context, s *site) (took, error) {
			return s.publish(ctx, 1, map[string]string{"BATCHING": shape.batching})
		})
		if err != nil {
			return all, fmt.Errorf("publisher, %s batches: %w", shape.batching, err)
		}
		all.Batches = append(all.Batches, b)
	}
	all.Plain, err = c.measure(ctx, func(ctx context.Context, s *site) (took, error) { return s.plain(ctx, c.Plain) })
	if err != nil {
		return all, fmt.Errorf("plain loop: %w", err)
	}
	return all, nil
}

// Publish has publishers with settings send everything.
func Publish(ctx context.Context, c Config, publishers int, settings map[string]string) (Rate, error) {
	return c.measure(ctx, func(ctx context.Context, s *site) (took, error) { return s.publish(ctx, publishers, settings) })
}

// measure makes a site, and a rate of what is done there.
func (c Config) measure(ctx context.Context, do func(context.Context, *site) (took, error)) (r Rate, err error) {
	s, err := c.open(ctx)
	if err != nil {
		return Rate{}, err
	}
	t, err := do(ctx, s)
	if err := errors.Join(err, s.close(ctx)); err != nil {
		return Rate{}, err
	}
	return Rate{
		PerSecond: float64(t.events) / t.time.Seconds(),
		Client:    t.client / time.Duration(max(t.events, 1)),
		Memory:    t.memory,
		Growth:    t.growth,
	}, nil
}
