package command

import (
	"context"

	"changerelay/services/projector/internal/readmodel"
)

// resumed is what a resume prints.
type resumed struct {
	// Accepted is how many halts do not count for HALT_LIMIT any more.
	Accepted int64 `json:"accepted"`
	DryRun   bool  `json:"dry_run,omitempty"`
}

// resume has the halts that there are count no more for HALT_LIMIT. The
// aggregates stay halted.
func (s *scope) resume(ctx context.Context) error {
	n, err := s.store.Halts.CountingHalts(ctx)
	if err != nil {
		return err
	}
	if n > 0 && !s.flags.DryRun {
		d, err := s.halts(ctx)
		if err != nil {
			return err
		}
		err = s.decide(ctx, d, func() (err error) {
			n, err = s.store.Halts.AcceptHalts(ctx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return s.lines.Encode(resumed{n, s.flags.DryRun})
}

// halts is a decision about the halted aggregates that count.
func (s *scope) halts(ctx context.Context) (*readmodel.Decision, error) {
	d := &readmodel.Decision{Command: "halts resume"}
	err := s.store.Halts.EachCounting(ctx, func(h *readmodel.HaltedAggregate) {
		d.Add(readmodel.Named{Aggregate: h.AggregateID, Event: h.EventID, Reason: h.Reason})
	})
	return d, err
}
