package modes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/load"
	"changerelay/services/e2e/internal/harness/orders"
)

// writtenAtOnce is how many events are written in one command.
const writtenAtOnce = 1000

// manyHalted is how many aggregates are halted where many are: more than any page of
// them, or list, has.
const manyHalted = 5_200

// WriteHalted writes the events of aggregates that halt, if the mode has some, and has the
// witness expect that. Somebody has to lead by then: a stream begins with what comes.
func (m Mode) WriteHalted(ctx context.Context, to load.Inserter, w *witness.Witness) error {
	if !m.Halted {
		return nil
	}
	events := make([]orders.Event, manyHalted)
	for i := range events {
		// There is no such price to add.
		events[i] = orders.Event{Aggregate: fmt.Sprintf("halted-%06d", i), Version: 1, Type: orders.Added, Time: time.Now().UTC().Truncate(time.Millisecond), Data: orders.Data{"sku": "x", "price": "dear"}}
	}
	if err := write(ctx, to, w, events); err != nil {
		return err
	}
	w.ExpectHalted(events)
	return nil
}

func write(ctx context.Context, to load.Inserter, w *witness.Witness, events []orders.Event) error {
	for some := range slices.Chunk(events, writtenAtOnce) {
		if err := to.Insert(ctx, some); err != nil {
			return err
		}
		w.Ledger.Wrote(some)
	}
	return nil
}

// How many events are there before publishers are, of how many aggregates, and how many
// more come of these.
const (
	earlyEvents     = 3000
	earlyAggregates = 200
	earlyMore       = 300
)

// WriteEarly writes the events that are there before publishers are, if the mode has some,
// and has the witness expect that they are copied. What it returns writes later events of
// the same aggregates; somebody has to lead by then.
func (m Mode) WriteEarly(ctx context.Context, seed uint64, to load.Inserter, w *witness.Witness) (goOn func(context.Context) error, err error) {
	if !m.Early {
		return func(context.Context) error { return nil }, nil
	}
	generator := orders.NewGenerator(seed, earlyAggregates)
	some := func(n int) []orders.Event {
		events := make([]orders.Event, n)
		for i := range events {
			events[i] = generator.Next(time.Now())
			events[i].Aggregate = "early-" + events[i].Aggregate
		}
		return events
	}
	events := some(earlyEvents)
	if err := write(ctx, to, w, events); err != nil {
		return nil, err
	}
	w.ExpectCopied(events)
	return func(ctx context.Context) error { return write(ctx, to, w, some(earlyMore)) }, nil
}

// failing is the share of events that a projection goes on without.
const failing = 0.01

// Failing makes some events ones that a projection cannot apply, if the mode has such.
func (m Mode) Failing(seed uint64, next func() (orders.Event, bool)) func() (orders.Event, bool) {
	if !m.Skips {
		return next
	}
	rng := rand.New(rand.NewPCG(seed, 0x6661696c))
	return func() (orders.Event, bool) {
		e, more := next()
		data, is := e.Data.(orders.Data)
		if is && rng.Float64() < failing && data["price"] != nil {
			data["price"] = "dear" // there is no such price to add
		}
		return e, more
	}
}
