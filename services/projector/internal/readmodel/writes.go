package readmodel

import (
	"context"
	"slices"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/reply"
)

// Writes are the read documents, and the ledger of positions in applied_positions.
type Writes struct {
	*database
	parking *Parking
	sources *sources
	// suspects are documents that may show that positions are lost.
	suspects *suspects
	// witnessed are documents that may show that read collections were emptied.
	witnessed *witnessed
}

var _ delivery.Store = (*Writes)(nil)

func newWrites(d *database, parking *Parking) *Writes {
	return &Writes{
		database:  d,
		parking:   parking,
		sources:   &sources{notes: d.own(projection.Positions)},
		suspects:  &suspects{found: map[string]suspect{}},
		witnessed: &witnessed{of: map[string]knownWitnesses{}},
	}
}

// Write implements delivery.Store. What goes to one collection, guarded by its
// documents, goes by itself, unless it depends on what they are; all else goes
// together: see joint.
func (s *Writes) Write(ctx context.Context, writes []projection.Write) ([]delivery.Outcome, error) {
	outcomes, err := s.write(ctx, writes)
	// So ends a write without a transaction that waits for one.
	if reply.Has(err, maxTimeExpired) && s.looks.due() {
		s.endIdle(ctx)
	}
	if reply.IsUnreachable(err) {
		err = reply.Unreachable(err)
	}
	return outcomes, err
}

func (s *Writes) write(ctx context.Context, writes []projection.Write) ([]delivery.Outcome, error) {
	outcomes, all := make([]delivery.Outcome, len(writes)), make([]int, len(writes))
	for i := range all {
		all[i] = i
	}
	reads := slices.ContainsFunc(writes, func(w projection.Write) bool { return w.Complete != nil })
	if to := collections(writes, all); !reads && len(to) == 1 && len(accounts(writes, all)) == 0 {
		p := &pass{store: s, collection: s.db.Collection(to[0]), writes: writes, outcomes: outcomes, pending: all, fold: adjacent}
		return outcomes, p.run(ctx)
	}
	p := &joint{store: s, writes: writes, outcomes: outcomes, pending: all, fold: anywhere}
	return outcomes, p.run(ctx)
}
