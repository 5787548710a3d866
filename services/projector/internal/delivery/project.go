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
	decider Decider
	filling Filling
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
		case ctx.Err() != nil:
			b.fail(0, context.Cause(ctx))
		default:
			p.decide(ctx, b, i, choice)
		}
	}
}

// decide has the projections decide what item i writes.
func (p *projector) decide(ctx context.Context, b *batch, i int, choice Choice) {
	it := &b.items[i]
	it.change.Within(ctx)
	writes, err := p.decider.Decide(it.change)
	switch {
	case errors.Is(err, projection.ErrInterrupted):
		b.fail(0, context.Cause(ctx))
	case err != nil:
		b.stop(i, poisoned, err.Error())
	default:
		p.choose(ctx, b, it, choice, writes)
	}
}

// choose fills in those writes of an item that are to be stored.
func (p *projector) choose(ctx context.Context, b *batch, it *item, choice Choice, writes []projection.Write) {
	writes, err := choice.Of(ctx, it.event, writes)
	if err != nil {
		b.fail(0, err)
	}
	for i := range writes {
		writes[i].By = p.by
	}
	b.writes, it.count = append(b.writes, writes...), len(writes)
}
