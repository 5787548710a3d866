package suite

import (
	"context"
	"fmt"
	"strings"
	"time"

	"changerelay/services/e2e/internal/bench/results"
)

// place is a round, by the number of its experiment and its own there.
type place struct{ experiment, round int }

// drawn are the rounds of all experiments, in an order that is drawn: a machine that
// warms up or slows down favours nobody.
func (b *bench) drawn(all []experiment) []place {
	var places []place
	for i, e := range all {
		for j := range e.rounds {
			places = append(places, place{i, j})
		}
	}
	b.order.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	return places
}

// taken is what was measured so far, by experiment and round.
type taken struct {
	experiments []experiment
	points      map[place][]results.Point
	wrong       map[place]string
	seconds     []float64 // by experiment
}

func newTaken(all []experiment) *taken {
	return &taken{experiments: all, points: make(map[place][]results.Point), wrong: make(map[place]string), seconds: make([]float64, len(all))}
}

// measured makes a round. One that cannot be made is told of in the result and does not
// keep the others from being made.
func (b *bench) measured(ctx context.Context, to *taken, at place, p *progress) {
	e := to.experiments[at.experiment]
	round := e.rounds[at.round]
	p.begin(e, round)
	began := time.Now()
	points, err := b.measure(ctx, round)
	to.seconds[at.experiment] += time.Since(began).Seconds()
	if err != nil {
		to.wrong[at] = fmt.Sprintf("%s: %s", round.name, strings.TrimSpace(err.Error()))
		p.note("%s: %v", round.name, err)
	}
	to.points[at] = points
	p.end(round, points)
}

// results are the experiments of which something was measured, with their points in the
// order in which they are written, and not in that of the measurement.
func (t *taken) results() []results.Experiment {
	var all []results.Experiment
	for i, e := range t.experiments {
		r := results.Experiment{Name: e.name, Title: e.title, Shows: e.shows, Seconds: t.seconds[i]}
		begun := false
		for j := range e.rounds {
			at := place{i, j}
			if _, done := t.points[at]; !done {
				continue
			}
			begun = true
			if wrong, found := t.wrong[at]; found {
				r.Wrong = append(r.Wrong, wrong)
			}
			r.Add(t.points[at]...)
		}
		if begun {
			all = append(all, r)
		}
	}
	return all
}
