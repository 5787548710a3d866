package witness

import (
	"context"

	"changerelay/services/e2e/internal/check/readmodel"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/ingo"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/source"
)

// stepped is what the projection in Go makes of events, computed anew.
type stepped struct {
	documents orders.Steps
	positions map[string]validate.Position
}

func newStepped() stepped {
	return stepped{documents: orders.Steps{}, positions: map[string]validate.Position{}}
}

// add takes in an event, and what it says of where it stands.
func (s stepped) add(e source.Stored, at validate.Position) {
	for _, id := range s.documents.Apply(e.Event, at.ID) {
		s.positions[id] = at
	}
}

// judgeSteps judges the documents of the projection in Go, and the events that they name.
func (w *Witness) judgeSteps(ctx context.Context, truth *record) ([]Violation, error) {
	if !w.projection.InGo {
		return nil, nil
	}
	model, err := readmodel.Read(ctx, w.Client, w.names.ReadModelDatabase, ingo.Collection)
	wrong := validate.Differences(truth.stepped.documents, model.Documents).And(validate.Misplaced(truth.stepped.positions, model.Positions))
	return []Violation{{WrongSteps, wrong.And(validate.Halted(model.Positions))}}, err
}
