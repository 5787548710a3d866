package speed

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"changerelay/services/e2e/internal/bench/stage"
)

// Config says what a comparison does.
type Config struct {
	// Open sets up the servers of one measurement.
	Open func(context.Context, ...stage.Topic) (*stage.Stage, error)
	// Events of Aggregates are waiting in the source.
	Events, Aggregates int
	// RoundTrip is added to each round trip to the broker.
	RoundTrip time.Duration
	// Plain is how long the plain loop runs.
	Plain time.Duration
	// Order draws the order in which ways are measured, where several are.
	Order *rand.Rand
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

// Compare measures every way, in an order that is drawn.
func Compare(ctx context.Context, c Config) (Comparison, error) {
	all := Comparison{Batches: make([]Batches, len(shapes))}
	var read []event
	type way struct {
		name string
		to   *Rate
		do   func(context.Context, *site) (took, error)
	}
	drain := func(ctx context.Context, s *site) (t took, err error) {
		t, read, err = s.drain(ctx)
		return t, err
	}
	ways := []way{
		{"bare driver", &all.Driver, drain},
		{"plain loop", &all.Plain, func(ctx context.Context, s *site) (took, error) { return s.plain(ctx, c.Plain) }},
	}
	for i, shape := range shapes {
		b := &all.Batches[i]
		b.Batching = shape.batching
		ways = append(ways,
			way{"bare SDK, " + shape.batching + " batches", &b.SDK, func(ctx context.Context, s *site) (took, error) {
				if read == nil { // what it sends, which is not measured
					if _, err := drain(ctx, s); err != nil {
						return took{}, err
					}
				}
				return s.send(ctx, shape.bareSenders, slices.Collect(shape.batches(read)), len(read))
			}},
			way{"publisher, " + shape.batching + " batches", &b.Publisher, func(ctx context.Context, s *site) (took, error) {
				return s.publish(ctx, 1, map[string]string{"BATCHING": shape.batching})
			}})
	}
	c.Order.Shuffle(len(ways), func(i, j int) { ways[i], ways[j] = ways[j], ways[i] })
	for _, w := range ways {
		var err error
		if *w.to, err = c.measure(ctx, w.do); err != nil {
			return all, fmt.Errorf("%s: %w", w.name, err)
		}
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
