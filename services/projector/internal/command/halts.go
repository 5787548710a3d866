package command

import (
	"context"
	"errors"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/readmodel"
)

// resumed is what a resume prints.
type resumed struct {
	// Accepted is how many halts do not count for HALT_LIMIT any more, Skipped how many
	// skipped events.
	Accepted int64 `json:"accepted"`
	Skipped  int64 `json:"skipped_accepted"`
	// Stopped is the event that stops the projectors no more; absent where none did.
	Stopped string `json:"stopped_by_event,omitempty"`
	DryRun  bool   `json:"dry_run,omitempty"`
}

// resume has the halts and the skipped events that there are count no more for
// HALT_LIMIT, and ends a stop. The aggregates stay halted.
func (s *scope) resume(ctx context.Context) error {
	halts, haltsErr := s.store.Halts.CountingHalts(ctx)
	skips, skipsErr := s.store.Skipped.Counting(ctx)
	stop, stopErr := s.store.Halts.Stopped(ctx)
	if err := errors.Join(haltsErr, skipsErr, stopErr); err != nil {
		return err
	}
	r := resumed{Accepted: halts, Skipped: skips, DryRun: s.flags.DryRun}
	if stop != nil {
		r.Stopped = stop.Event.ID
	}
	if (halts > 0 || skips > 0 || stop != nil) && !s.flags.DryRun {
		d, err := s.counted(ctx, stop)
		if err != nil {
			return err
		}
		err = s.decide(ctx, d, func() (err error) {
			if r.Accepted, err = s.store.Halts.AcceptHalts(ctx); err != nil {
				return err
			}
			if r.Skipped, err = s.store.Skipped.Accept(ctx); err != nil || stop == nil {
				return err
			}
			return s.store.Halts.Resume(ctx)
		})
		if err != nil {
			return err
		}
	}
	return s.lines.Encode(r)
}

// counted is a decision about what stops the projectors: the halted aggregates that
// count, so many skipped events, and an event.
func (s *scope) counted(ctx context.Context, stop *delivery.Stop) (*readmodel.Decision, error) {
	d := &readmodel.Decision{Command: "halts resume"}
	if stop != nil {
		d.Add(readmodel.Named{Aggregate: stop.Event.AggregateID, Event: stop.Event.ID, Reason: stop.Reason})
	}
	err := s.store.Halts.EachCounting(ctx, func(h *readmodel.HaltedAggregate) {
		d.Add(readmodel.Named{Aggregate: h.AggregateID, Event: h.EventID, Reason: h.Reason})
	})
	if err != nil {
		return d, err
	}
	err = s.store.Skipped.Each(ctx, "", false, func(e readmodel.SkippedEvent) error {
		if e.Counted {
			d.Add(namedSkip(&e))
		}
		return nil
	})
	return d, err
}
