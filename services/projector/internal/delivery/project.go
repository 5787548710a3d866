package delivery

import (
	"context"
	"errors"

	"changerelay/services/projector/internal/projection"
)

// projector is the stage that has the projections decide what is written, and stops
// before the first item that they cannot project. Where something cannot be looked up,
// or ctx has ended, nothing of the batch goes on.
type projector struct {
	decider decides
	filling Filling
	skips   *skips
	// by is the hold's name, which each write has.
	by string
}

func (p *projector) take(ctx context.Context, b *batch) {
	choice := begin(p.filling)
	b.writes = make([]projection.Write, 0, b.end)
	for i := 0; i < b.end; i++ {
		it := &b.items[i]
		it.first = len(b.writes)
		switch {
		case it.event == nil:
		case it.change == nil:
			b.stop(i, poisoned, it.problem)
			b.refused = true
		case ctx.Err() != nil:
			b.fail(0, context.Cause(ctx))
		default:
			p.decide(ctx, b, i, choice)
		}
	}
}

// decide fills in the writes of item i.
func (p *projector) decide(ctx context.Context, b *batch, i int, choice Choice) {
	it := &b.items[i]
	writes := it.skipped
	if writes == nil {
		decided, failed, err := p.skips.decide(ctx, p.decider, it)
		if err != nil {
			b.fail(0, err)
			return
		}
		if writes = decided; failed != nil || skipping(decided) {
			if writes = p.skips.take(b, i, decided, failed); writes == nil {
				return
			}
		}
	}
	writes, err := choice.Of(ctx, it.event, writes)
	if err != nil {
		b.fail(0, err)
		return
	}
	for w := range writes {
		writes[w].By = p.by
	}
	b.writes, it.count = append(b.writes, writes...), len(writes)
}

// decides is what a Decider and Policed have in common.
type decides interface {
	Decide(c *projection.Change) ([]projection.Write, error)
}

// decide has the projections decide what a change writes, or says why they cannot. The
// error is that of ctx.
func decide(ctx context.Context, decider decides, change *projection.Change) (writes []projection.Write, failed, err error) {
	change.Within(ctx)
	writes, err = decider.Decide(change)
	switch {
	case errors.Is(err, projection.ErrInterrupted):
		err = context.Cause(ctx)
	case err != nil:
		failed, err = err, nil
	}
	return writes, failed, err
}
