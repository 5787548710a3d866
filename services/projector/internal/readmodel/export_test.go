package readmodel

import (
	"context"
	"time"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// Confirm decides about one write that the unique _id has refused.
func (s *Writes) Confirm(ctx context.Context, w projection.Write) (delivery.Outcome, error) {
	outcomes, writes := make([]delivery.Outcome, 1), []projection.Write{w}
	if w.Keyed {
		p := &transaction{store: s, writes: writes, outcomes: outcomes, pending: []int{0}, scope: anywhere}
		err := p.confirm(ctx, positionKeyOf(&w))
		return outcomes[0], err
	}
	p := &bulkWriter{store: s, collection: s.db.Collection(w.Collection), writes: writes, outcomes: outcomes, pending: []int{0}, scope: adjacent}
	err := p.confirm(ctx, 0)
	return outcomes[0], err
}

// Heard has a process have said that it lives.
func (p *Process) Heard(at time.Time) { p.heardAt(at) }

// Aged has what was read of continuations be as old as it may be, and older.
func (s *Store) Aged() {
	known := s.Writes.sources
	known.mu.Lock()
	defer known.mu.Unlock()
	known.asOf = known.asOf.Add(-sourcesTrusted - time.Second)
}

// Waiting is how many writes to a collection wait to be sent with others.
func (s *Writes) Waiting(collection string) int {
	c := s.commit(s.db.Collection(collection))
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}
