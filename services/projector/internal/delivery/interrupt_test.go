package delivery_test

import (
	"context"
	"errors"
	"testing"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
)

var errStopped = errors.New("stopped")

// long is a projection whose expression is looked at many times before it ends.
const long = "projections: [{name: p, collection: c, on: {Happened: {set: {v: 'let l = 1..300; all(l, all(l, true))'}}}}]"

// stopping is a decider that is asked to stop in the middle of a decision.
type stopping struct {
	projection.Projections
	stop context.CancelCauseFunc
}

func (s *stopping) Decide(c *projection.Change) ([]projection.Write, error) {
	s.stop(errStopped)
	return s.Projections.Decide(c)
}

// A stop in the middle of an expression decides nothing: the event is neither
// applied nor halted.
func TestHandler_AStopInterruptsAnExpressionAndHaltsNothing(t *testing.T) {
	t.Parallel()
	store := readmodeltest.NewFake()
	ctx, stop := context.WithCancelCause(t.Context())
	decider := &stopping{parse(t, long), stop}
	handler := newHandler(decider, store)
	verdicts, err := handler.Hold("a").Apply(ctx, happened(t, "a", 1))
	if !errors.Is(err, errStopped) || len(verdicts) != 0 {
		t.Errorf("got %v and %v, want the stop", verdicts, err)
	}
	if halted, err := store.Halted(t.Context(), "a"); err != nil || halted != "" {
		t.Errorf("halted: got %v and %v, want it not", halted, err)
	}
}

// So does one while it is judged whether a dead letter can be put back.
func TestPutBack_AStopInterruptsAnExpressionAndRefusesNothing(t *testing.T) {
	t.Parallel()
	store := readmodeltest.NewFake()
	ctx, stop := context.WithCancelCause(t.Context())
	p := delivery.PutBack{Decider: &stopping{parse(t, long), stop}, Store: store, Parking: store, ParkedMessages: store}
	m := happened(t, "a", 1)[0]
	letter := delivery.LetterOf(&m, "")
	if r, err := p.Judge(ctx, &letter, m.Message); !errors.Is(err, errStopped) || r.Fate != "" {
		t.Errorf("got %+v and %v, want the stop", r, err)
	}
}
