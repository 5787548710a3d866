package delivery

import (
	"context"
	"fmt"
	"slices"

	"changerelay/pkg/contract"
)

// Shelf is where parked messages are, for whoever applies them later.
type Shelf interface {
	// Next returns the aggregate's first parked messages in order, up to limit.
	Next(ctx context.Context, aggregate string, limit int) ([]contract.Message, error)
	// Unpark removes an event's message, and tells whether it was there.
	Unpark(ctx context.Context, e *contract.Event) (bool, error)
	// Lift ends the halt unless a message is parked, and tells whether it did. No
	// message is parked at the same moment.
	Lift(ctx context.Context, aggregate string) (bool, error)
}

// Redriven is what became of a redrive.
type Redriven struct {
	AggregateID string `json:"aggregate"`
	Applied     int    `json:"applied"`
	Repeated    int    `json:"repeated"`
	// Lifted tells that nothing is parked any more and the halt is over.
	Lifted bool `json:"lifted"`
	// FailedEventID and Reason name the event that failed again.
	FailedEventID string `json:"failed_event_id,omitempty"`
	Reason        string `json:"reason,omitempty"`
}

// redrivePage is how many parked messages are read at once. Each may be large.
const redrivePage = 20

// Redrive applies an aggregate's parked messages in order, in place, until one
// fails again or none is left; then it lifts the halt. Replicas may park more
// messages all the while, and other redrives may run.
//
// A message is removed only after its writes are stored, so an interrupted
// redrive goes on where it stopped. Parking and lifting exclude each other: a
// replica that comes too late to park finds the halt gone, and applies.
func Redrive(ctx context.Context, decider Decider, store Store, shelf Shelf, aggregate string) (Redriven, error) {
	done := Redriven{AggregateID: aggregate}
	for {
		messages, err := shelf.Next(ctx, aggregate, redrivePage)
		if err != nil {
			return done, err
		}
		for i := range messages {
			if err := done.apply(ctx, decider, store, shelf, messages[i]); err != nil || done.Reason != "" {
				return done, err
			}
		}
		if len(messages) > 0 {
			continue
		}
		done.Lifted, err = shelf.Lift(ctx, aggregate)
		if err != nil || done.Lifted {
			return done, err
		}
	}
}

// apply applies one parked message and removes it, or notes why it fails.
func (r *Redriven) apply(ctx context.Context, decider Decider, store Store, shelf Shelf, m contract.Message) error {
	change, err := decode(m)
	if err != nil {
		r.FailedEventID, r.Reason = m.ID, err.Error()
		return nil
	}
	writes, err := decider.Decide(change)
	if err != nil {
		r.FailedEventID, r.Reason = change.ID, err.Error()
		return nil
	}
	outcomes, err := store.Write(ctx, writes)
	if rejected, ok := asRejected(err); ok {
		r.FailedEventID, r.Reason = change.ID, rejected.Reason
		return nil
	}
	if err != nil {
		return fmt.Errorf("apply event %q of aggregate %q: %w", change.ID, r.AggregateID, err)
	}
	if _, err := shelf.Unpark(ctx, &change.Event); err != nil {
		return err
	}
	if slices.Contains(outcomes, Applied) {
		r.Applied++
	} else {
		r.Repeated++
	}
	return nil
}
