package delivery

import (
	"context"
	"fmt"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
)

// Records are the records of events that projections have skipped.
type Records interface {
	// LastSkipped is the highest sequence among an aggregate's records; "" where it has
	// none.
	LastSkipped(ctx context.Context, aggregate string) (contract.Sequence, error)
	// SkippedBy are the projections of which there is a record that they have skipped an
	// event.
	SkippedBy(ctx context.Context, e *contract.Event) (projections []string, err error)
}

// mending marks the writes of events that may have been skipped before: their records go as
// the events are applied. A skip moves no position where there is no document yet, and a
// dead letter never does, so such an event may come again and be applied.
//
// It is asked once for all that one session or redrive does, since nobody else deals with
// the aggregate meanwhile. Events behind the last record go as they would without any.
type mending struct {
	records   Records // nil where nothing is ever skipped
	aggregate string
	last      contract.Sequence
	known     bool
}

// look finds how far the records go, once.
func (m *mending) look(ctx context.Context) (err error) {
	if m.records == nil || m.known {
		return nil
	}
	if m.last, err = m.records.LastSkipped(ctx, m.aggregate); err != nil {
		return fmt.Errorf("look up what was skipped of aggregate %q: %w", m.aggregate, err)
	}
	m.known = true
	return nil
}

func (m *mending) mark(writes []projection.Write) {
	for i := range writes {
		w := &writes[i]
		w.Mends = w.Skipped == nil && w.Event.Sequence <= m.last
	}
	for i := range writes {
		if w := &writes[i]; w.Skipped != nil {
			m.last = max(m.last, w.Event.Sequence)
		}
	}
}
