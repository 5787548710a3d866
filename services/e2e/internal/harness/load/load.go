// Package load writes events to a source at a steady rate.
package load

import (
	"context"
	"math/rand/v2"
	"time"

	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/payload"
)

const (
	// pace is how often the writer looks how many events are due.
	pace = 20 * time.Millisecond
	// largestBatch bounds one insert, after a pause that left many due.
	largestBatch = 1000
)

// Inserter writes events in order; it returns when they are there to stay.
type Inserter interface {
	Insert(ctx context.Context, events []orders.Event) error
}

// Load is a stream of events and its rate.
type Load struct {
	To Inserter
	// Rate is how many events are written a second; 0 is as many as can be.
	Rate int
	// Next draws the next event; false at their end.
	Next func() (orders.Event, bool)
	// Least is how long is written at least, where the events do not end.
	Least time.Duration
	// Wrote is told of every batch once it is written.
	Wrote func([]orders.Event)
}

// Run writes until the events end, or until Least is over and enough is closed.
// An insert that takes its time does not lower the rate: what became due
// meanwhile is written after it.
func (l *Load) Run(ctx context.Context, enough <-chan struct{}) error {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	began := time.Now()
	written := 0
	for {
		elapsed := time.Since(began)
		if elapsed >= l.Least && closed(enough) {
			return nil
		}
		want := l.due(elapsed, written)
		events := l.take(want)
		if err := l.write(ctx, events); err != nil {
			return err
		}
		written += len(events)
		if len(events) < want {
			return nil
		}
		if want == largestBatch {
			continue
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// due is how many events the next batch has.
func (l *Load) due(elapsed time.Duration, written int) int {
	if l.Rate == 0 {
		return largestBatch
	}
	return min(int(elapsed.Seconds()*float64(l.Rate))-written, largestBatch)
}

func (l *Load) write(ctx context.Context, events []orders.Event) error {
	if len(events) == 0 {
		return nil
	}
	if err := l.To.Insert(ctx, events); err != nil {
		return err
	}
	l.Wrote(events)
	return nil
}

// take draws up to n events.
func (l *Load) take(n int) []orders.Event {
	events := make([]orders.Event, 0, n)
	for range n {
		e, more := l.Next()
		if !more {
			break
		}
		events = append(events, e)
	}
	return events
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Generated draws events from a generator, without end.
func Generated(g *orders.Generator) func() (orders.Event, bool) {
	return func() (orders.Event, bool) { return g.Next(time.Now()), true }
}

// Listed draws the events of a list.
func Listed(events []orders.Event) func() (orders.Event, bool) {
	return func() (orders.Event, bool) {
		if len(events) == 0 {
			return orders.Event{}, false
		}
		e := events[0]
		events = events[1:]
		return e, true
	}
}

// Limited draws at most n events.
func Limited(n int, next func() (orders.Event, bool)) func() (orders.Event, bool) {
	return func() (orders.Event, bool) {
		if n == 0 {
			return orders.Event{}, false
		}
		n--
		return next()
	}
}

const (
	// ladenShare is the share of events that carry a payload that is hard to carry.
	ladenShare = 0.5
	// pastShare is the share of events that happened long ago.
	pastShare = 0.02
)

// past is before 1970, where times count backwards.
var past = time.Date(1815, 6, 18, 11, 30, 0, 7e6, time.UTC)

// Laden adds to the data of events what is hard to carry, as a field that no
// projection knows.
func Laden(seed uint64, names payload.Names, next func() (orders.Event, bool)) func() (orders.Event, bool) {
	rng := rand.New(rand.NewPCG(seed, 0x6c6f6164))
	return func() (orders.Event, bool) {
		e, more := next()
		if data, ok := e.Data.(orders.Data); ok && rng.Float64() < ladenShare {
			data["laden"] = payload.New(rng, names)
		}
		return e, more
	}
}

// Dated dates some of the events long ago.
func Dated(seed uint64, next func() (orders.Event, bool)) func() (orders.Event, bool) {
	rng := rand.New(rand.NewPCG(seed, 0x64617465))
	return func() (orders.Event, bool) {
		e, more := next()
		if rng.Float64() < pastShare {
			e.Time = past
		}
		return e, more
	}
}
