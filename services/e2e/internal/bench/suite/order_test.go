package suite

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"changerelay/services/e2e/internal/bench/results"
)

// The order of the measurement is the seed's, that of the tables is not.
func TestRounds_AreMeasuredInAnOrderThatIsDrawnAndShownInTheirOwn(t *testing.T) {
	t.Parallel()
	var measured []string
	var all []experiment
	for i := range 3 {
		e := experiment{name: fmt.Sprint(i)}
		for j := range 4 {
			name := fmt.Sprintf("%d/%d", i, j)
			e.rounds = append(e.rounds, round{name: name, measure: func(context.Context, *bench) ([]results.Point, error) {
				measured = append(measured, name)
				return []results.Point{{Name: name, Figures: []results.Figure{results.One("f", results.Count, 1)}}}, nil
			}})
		}
		all = append(all, e)
	}
	order := func(seed uint64) []string {
		measured = nil
		b, made := &bench{order: rand.New(rand.NewPCG(seed, 0))}, newTaken(all)
		p := newProgress(io.Discard, all)
		for _, at := range b.drawn(all) {
			b.measured(t.Context(), made, at, p)
		}
		var shown []string
		for _, e := range made.results() {
			for _, point := range e.Points {
				shown = append(shown, point.Name)
			}
		}
		if !slices.IsSorted(shown) || len(shown) != 12 {
			t.Errorf("seed %d: shown as %v, want all 12 in order", seed, shown)
		}
		return measured
	}
	one, again, other := order(1), order(1), order(2)
	if !reflect.DeepEqual(one, again) || reflect.DeepEqual(one, other) || slices.IsSorted(one) {
		t.Errorf("got %v, again %v, and of another seed %v, want the same, another, and none in order", one, again, other)
	}
}
