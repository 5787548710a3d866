package chaos

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"changerelay/services/e2e/internal/load"
	"changerelay/services/e2e/internal/orders"
)

// phase is a stretch of one kind of events.
type phase struct {
	name string
	// share is its rate, against that of a steady phase.
	share float64
	// aggregates is how many there are; 0 writes nothing.
	aggregates int
	// padding is how many bytes an event's data is made larger by, at most.
	padding int
}

var phases = []phase{
	{name: "steady", share: 1, aggregates: 5000},
	{name: "many", share: 1, aggregates: 200_000},
	{name: "hot", share: 1, aggregates: 5},
	{name: "burst", share: 4, aggregates: 2000},
	{name: "large", share: 0.05, aggregates: 100, padding: 200_000},
	{name: "idle"},
}

const (
	shortestPhase = 5 * time.Second
	longestPhase  = 20 * time.Second
)

// workload writes one phase after another, drawn from the seed.
type workload struct {
	cfg   Config
	to    load.Inserter
	wrote func([]orders.Event)
	say   func(format string, args ...any)
}

// run writes until done is closed and the phase it is in is over.
func (w *workload) run(ctx context.Context, done <-chan struct{}) error {
	rng := rand.New(rand.NewPCG(w.cfg.Seed, 0x776f726b))
	sources := make([]func() (orders.Event, bool), len(phases))
	for i, p := range phases {
		if p.aggregates > 0 {
			sources[i] = p.events(w.cfg.Seed+uint64(i), rng.Uint64())
		}
	}
	for i := 0; ; i = rng.IntN(len(phases)) {
		lasts := shortestPhase + time.Duration(rng.Int64N(int64(longestPhase-shortestPhase)))
		w.say("%s events for %.0f s", phases[i].name, lasts.Seconds())
		over, stop := context.WithTimeout(ctx, lasts)
		err := w.write(ctx, over, phases[i], sources[i], done)
		stop()
		if err != nil {
			return err
		}
		select {
		case <-done:
			return nil
		default:
		}
	}
}

// write writes one phase until it is over, or done is closed.
func (w *workload) write(ctx, over context.Context, p phase, next func() (orders.Event, bool), done <-chan struct{}) error {
	enough := make(chan struct{})
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		defer close(enough)
		select {
		case <-over.Done():
		case <-done:
		case <-stop:
		}
	}()
	if next == nil {
		<-enough
		return context.Cause(ctx)
	}
	l := load.Load{To: w.to, Rate: max(int(p.share*float64(w.cfg.Rate)), 1), Next: next, Wrote: w.wrote}
	return l.Run(ctx, enough)
}

// events draws the events of a phase, whose aggregates are its own.
func (p phase) events(seed, draw uint64) func() (orders.Event, bool) {
	generated := load.Generated(orders.NewGenerator(seed, p.aggregates))
	rng := rand.New(rand.NewPCG(draw, 0))
	return func() (orders.Event, bool) {
		e, more := generated()
		e.Aggregate = p.name + "-" + e.Aggregate
		if data, ok := e.Data.(orders.Data); ok && p.padding > 0 {
			data["note"] = strings.Repeat("x", rng.IntN(p.padding))
		}
		return e, more
	}
}
