package chaos

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"changerelay/services/e2e/internal/campaign/modes"
	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/harness/load"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/payload"
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
	{name: "steady", share: 1, aggregates: 1000},
	// Each event is a session of its own, which costs the relay the most.
	{name: "many", share: 0.15, aggregates: 200_000},
	{name: "hot", share: 1, aggregates: 5},
	{name: "burst", share: 4, aggregates: 500},
	{name: "large", share: 0.02, aggregates: 100, padding: 200_000},
	{name: "idle"},
}

// erasing is the share of orders that are deleted from the read model once they
// are over. Most of them are placed again.
const erasing = 0.2

const (
	shortestPhase = 5 * time.Second
	longestPhase  = 20 * time.Second
)

// workload writes one phase after another, drawn from the seed.
type workload struct {
	cfg   Config
	to    load.Inserter
	wrote func([]orders.Event)
	// counts tells how many events are written, and how many of them applied.
	counts func() (written, applied int)
	say    func(format string, args ...any)
}

// run writes one phase after another until the faults end. An error of ctx's is one.
func (w *workload) run(ctx, faults context.Context) error {
	rng := rand.New(rand.NewPCG(w.cfg.Seed, 0x776f726b))
	sources := make([]func() (orders.Event, bool), len(phases))
	for i, p := range phases {
		if p.aggregates > 0 {
			draw := rng.Uint64()
			sources[i] = w.cfg.mode().Failing(draw, p.of(w.cfg.mode()).events(w.cfg.Seed+uint64(i), draw))
		}
	}
	for i := 0; faults.Err() == nil; i = rng.IntN(len(phases)) {
		lasts := shortestPhase + time.Duration(rng.Int64N(int64(longestPhase-shortestPhase)))
		written, applied := w.counts()
		w.say("%s events for %.0f s; so far %s are written, %s of them in the read model", phases[i].name, lasts.Seconds(),
			report.Thousands(int64(written)), report.Thousands(int64(applied)))
		phase, end := context.WithTimeout(faults, lasts)
		err := w.write(ctx, phase, phases[i], sources[i])
		end()
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// write writes one phase until its context ends.
func (w *workload) write(ctx, phase context.Context, p phase, next func() (orders.Event, bool)) error {
	if next == nil {
		<-phase.Done()
		return nil
	}
	l := load.Load{To: w.to, Rate: max(int(p.share*float64(w.cfg.Rate)), 1), Next: next, Wrote: w.wrote}
	return l.Run(ctx, phase.Done())
}

// of is the phase as a mode can carry it: a message in documents mode may have a
// document three times.
func (p phase) of(m modes.Mode) phase {
	if m.Documents != nil {
		p.padding /= 4
	}
	return p
}

// events draws the events of a phase, whose aggregates are its own.
func (p phase) events(seed, draw uint64) func() (orders.Event, bool) {
	generator := orders.NewGenerator(seed, p.aggregates)
	generator.Erasing = erasing
	generated := load.Dated(draw, load.Laden(draw, payload.StorableNames, load.Generated(generator)))
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
