package delivery

import (
	"context"
	"fmt"
	"slices"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
)

// Shelf is where parked messages are, for whoever applies them later.
type Shelf interface {
	// Next returns the aggregate's first parked messages in order, up to limit.
	Next(ctx context.Context, aggregate string, limit int) ([]contract.Message, error)
	// Mark is what the aggregate's read documents say of its halt; nil where it is
	// not halted.
	Mark(ctx context.Context, aggregate string) (*projection.Halted, error)
	// Unpark removes an event's message, and tells whether it was there.
	Unpark(ctx context.Context, e *contract.Event) (bool, error)
	// Lift ends the halt unless a message is parked, takes its mark from the read
	// documents in the same step, and tells whether it did. No message is parked
	// at the same moment.
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

// Gaps is how a redrive deals with versions that are missing. The zero Gaps passes
// over them.
type Gaps struct {
	// Versions has it stop before a gap, and note what it has applied.
	Versions Versions
	// Accept has it go on over gaps, for good: a missing version that comes later
	// is not applied.
	Accept bool

	links *links
}

func (g *Gaps) begin(ctx context.Context, aggregate string) (err error) {
	if g.Versions == nil {
		return nil
	}
	if g.Accept {
		if err := g.Versions.ForgetVersion(ctx, aggregate); err != nil {
			return fmt.Errorf("forget the version of aggregate %q: %w", aggregate, err)
		}
	}
	g.links, err = lookUp(ctx, g.Versions, aggregate)
	return err
}

// before is what is missing before a version, if that matters. Another redrive
// may have come further, so what is missing is looked up again.
func (g *Gaps) before(ctx context.Context, version contract.Version) (string, error) {
	if g.links == nil || g.Accept || missing(g.links.reached, version) == "" {
		return "", nil
	}
	links, err := lookUp(ctx, g.Versions, g.links.aggregate)
	if err != nil {
		return "", err
	}
	g.links = links
	return missing(links.reached, version), nil
}

func (g *Gaps) passed(ctx context.Context, version contract.Version) error {
	if g.links == nil {
		return nil
	}
	return g.links.reach(ctx, version)
}

// redrivePage is how many parked messages are read at once. Each may be large.
const redrivePage = 20

// redrive is one on its way.
type redrive struct {
	Redriven
	decider Decider
	store   Store
	shelf   Shelf
	gaps    Gaps
}

// Redrive applies an aggregate's parked messages in order, in place, until one
// fails again or none is left; then it lifts the halt. Replicas may park more
// messages all the while, and other redrives may run.
//
// A message is removed only after its writes are stored, so an interrupted
// redrive goes on where it stopped. Parking and lifting exclude each other: a
// replica that comes too late to park finds the halt gone, and applies. Until
// then every write keeps the mark of the halt on its document.
func Redrive(ctx context.Context, decider Decider, store Store, shelf Shelf, gaps Gaps, aggregate string) (Redriven, error) {
	r := &redrive{Redriven: Redriven{AggregateID: aggregate}, decider: decider, store: store, shelf: shelf, gaps: gaps}
	if err := r.gaps.begin(ctx, aggregate); err != nil {
		return r.Redriven, err
	}
	for {
		messages, err := shelf.Next(ctx, aggregate, redrivePage)
		if err != nil {
			return r.Redriven, err
		}
		// Asked after the messages: what was parked then was so under a halt, and
		// where that is gone another redrive has applied it.
		mark, err := shelf.Mark(ctx, aggregate)
		if err != nil {
			return r.Redriven, err
		}
		for i := range messages {
			if err := r.apply(ctx, messages[i], mark); err != nil || r.Reason != "" {
				return r.Redriven, err
			}
		}
		if len(messages) > 0 {
			continue
		}
		r.Lifted, err = shelf.Lift(ctx, aggregate)
		if err != nil || r.Lifted {
			return r.Redriven, err
		}
	}
}

// apply applies one parked message and removes it, or notes why it fails.
func (r *redrive) apply(ctx context.Context, m contract.Message, mark *projection.Halted) error {
	change, err := decode(m)
	if err != nil {
		r.FailedEventID, r.Reason = m.ID, err.Error()
		return nil
	}
	gap, err := r.gaps.before(ctx, change.Version)
	if err != nil {
		return err
	}
	if gap != "" {
		r.FailedEventID, r.Reason = change.ID, gap
		return nil
	}
	writes, err := r.decider.Decide(change)
	if err != nil {
		r.FailedEventID, r.Reason = change.ID, err.Error()
		return nil
	}
	for i := range writes {
		writes[i].Halted = mark
	}
	outcomes, err := r.store.Write(ctx, writes)
	if rejected, ok := asRejected(err); ok {
		r.FailedEventID, r.Reason = change.ID, rejected.Reason
		return nil
	}
	if err != nil {
		return fmt.Errorf("apply event %q of aggregate %q: %w", change.ID, r.AggregateID, err)
	}
	if err := r.gaps.passed(ctx, change.Version); err != nil {
		return err
	}
	if _, err := r.shelf.Unpark(ctx, &change.Event); err != nil {
		return err
	}
	if slices.Contains(outcomes, Applied) {
		r.Applied++
	} else {
		r.Repeated++
	}
	return nil
}
