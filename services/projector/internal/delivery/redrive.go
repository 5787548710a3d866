package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
)

// ParkedMessages gives access to parked messages, to apply them later.
type ParkedMessages interface {
	// Next returns the aggregate's first parked messages in order: one at least
	// where there are any, and more as far as there is room for what they weigh,
	// which it waits for. done, which is never nil without an error, gives the room
	// back; until then another Next may wait.
	Next(ctx context.Context, aggregate string) (messages []ParkedMessage, done func(), err error)
	// Position is that which guards a write, as a majority has it; zero where there
	// is none yet.
	Position(ctx context.Context, w *projection.Write) (Position, error)
	// Missing is how many messages were parked under the aggregate's halt that are
	// neither there nor were unparked.
	Missing(ctx context.Context, aggregate string) (int64, error)
	// Mark is what the aggregate's read documents say of its halt; nil where it is
	// not halted.
	Mark(ctx context.Context, aggregate string) (*projection.Halted, error)
	Records
	// Reapplied notes that projections have an event that was dead-lettered for them: that
	// they lack it is true no more.
	Reapplied(ctx context.Context, e *contract.Event, projections []string) error
	// IsParked tells whether an event's message is parked.
	IsParked(ctx context.Context, e *contract.Event) (bool, error)
	// Unpark removes an event's message, and tells whether it was there.
	Unpark(ctx context.Context, e *contract.Event) (bool, error)
	// Lift ends the halt unless a message is parked, takes its mark from the read
	// documents in the same step, and tells whether it did. No message is parked
	// at the same moment.
	Lift(ctx context.Context, aggregate string) (bool, error)
}

// Position is how far a document or projection is that an event changes.
type Position struct {
	Sequence contract.Sequence
	EventID  string
	// First is the sequence with which the aggregate began there; "" where that is not known, or
	// nothing is missing before it.
	First contract.Sequence
	// Continued tells that it is of another source, and an operator has said that one
	// of the two goes on from the other.
	Continued bool
	// Other says that it is of another source than the event, and nobody has said so;
	// empty where it is not. Then the sequences do not compare.
	Other string
}

// ParkedMessage is a parked message.
type ParkedMessage struct {
	contract.Message
	// FollowedBy are the projections that followed the event when it was parked;
	// nil where that is not known.
	FollowedBy []string
	// Returned is that of Parked.
	Returned bool
	// Behind tells that the aggregate was halted at a later event when the message
	// was parked, or a redrive had taken as late a one away: what was applied before
	// may be beyond it.
	Behind bool
	// Foreign says why the message is not to be applied here at all, "" where it is.
	Foreign string
}

// Redriven is what became of a redrive.
type Redriven struct {
	AggregateID string `json:"aggregate"`
	Applied     int    `json:"applied"`
	Repeated    int    `json:"repeated"`
	// PassedBy counts events that no projection follows, as none did when they
	// were parked.
	PassedBy int `json:"passed_by"`
	// Lost counts events that were taken away unapplied, as Gaps.Lost has it.
	Lost int `json:"lost,omitempty"`
	// Lifted tells that nothing is parked any more and the halt is over.
	Lifted bool `json:"lifted"`
	// PutBack tells that the halt was gone, and was put back first.
	PutBack bool `json:"halt_put_back,omitempty"`
	// FailedEventID and Reason name the event that failed again.
	FailedEventID string `json:"failed_event_id,omitempty"`
	Reason        string `json:"reason,omitempty"`
}

// redrive is one on its way.
type redrive struct {
	Redriven
	decider Decider
	store   Store
	parked  ParkedMessages
	gaps    Gaps
	mending mending
}

// Redrive applies an aggregate's parked messages in order, in place, until one
// fails again or none is left; then it lifts the halt. Replicas may park more
// messages all the while, and other redrives may run.
//
// A message is removed only after its writes are stored, so an interrupted
// redrive goes on where it stopped. Parking and lifting exclude each other: a
// replica that comes too late to park finds the halt gone, and applies. Until
// then every write keeps the mark of the halt on its document.
func Redrive(ctx context.Context, decider Decider, store Store, parked ParkedMessages, gaps Gaps, aggregate string) (Redriven, error) {
	r := &redrive{Redriven: Redriven{AggregateID: aggregate}, decider: decider, store: store, parked: parked, gaps: gaps, mending: mending{records: parked, aggregate: aggregate}}
	var err error
	if r.FailedEventID, r.Reason, err = r.gaps.stopped(ctx, parked, aggregate); err != nil || r.Reason != "" {
		return r.Redriven, err
	}
	if err := r.gaps.begin(ctx, aggregate); err != nil {
		return r.Redriven, err
	}
	for {
		some, err := r.page(ctx)
		if err != nil || r.Reason != "" {
			return r.Redriven, err
		}
		if some {
			continue
		}
		r.Lifted, err = parked.Lift(ctx, aggregate)
		if err != nil || r.Lifted {
			return r.Redriven, err
		}
	}
}

// page applies the first parked messages, and tells whether there were any.
func (r *redrive) page(ctx context.Context) (some bool, err error) {
	messages, done, err := r.parked.Next(ctx, r.AggregateID)
	if err != nil {
		return false, err
	}
	defer done()
	// Asked after the messages: what was parked then was so under a halt, and
	// where that is gone another redrive has applied it.
	mark, err := r.parked.Mark(ctx, r.AggregateID)
	if err != nil {
		return true, err
	}
	if r.Reason = r.gaps.returning(mark); r.Reason != "" {
		return true, nil
	}
	for i := range messages {
		if err := r.apply(ctx, messages[i], mark); err != nil || r.Reason != "" {
			return true, err
		}
	}
	return len(messages) > 0, nil
}

// redrivesAtOnce is how many aggregates are redriven side by side.
const redrivesAtOnce = 16

// RedriveAll redrives aggregates side by side, each in its order, and calls each
// with what became of them, in the order given. An aggregate that cannot be
// redriven holds up no other; the error says of all of them why.
func RedriveAll(ctx context.Context, decider Decider, store Store, parked ParkedMessages, gaps Gaps, aggregates []string, each func(Redriven) error) error {
	return InOrder(ctx, len(aggregates), redrivesAtOnce, func(i int) (Redriven, error) {
		return Redrive(ctx, decider, store, parked, gaps, aggregates[i])
	}, each)
}

// InOrder does n things, some at once, and calls each with what became of them, in their
// order. One that fails holds up no other; the error says of all of them why. Once ctx has
// ended no more is begun.
func InOrder[T any](ctx context.Context, n, atOnce int, do func(i int) (T, error), each func(T) error) error {
	type result struct {
		done T
		err  error
	}
	results := make([]chan result, n)
	for i := range results {
		results[i] = make(chan result, 1)
	}
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(n, atOnce) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if ctx.Err() == nil {
					done, err := do(i)
					results[i] <- result{done, err}
				}
				close(results[i])
			}
		})
	}
	defer group.Wait()
	var errs []error
	for _, r := range results {
		if r, begun := <-r; begun {
			errs = append(errs, r.err, each(r.done))
		}
	}
	if ctx.Err() != nil {
		errs = append(errs, context.Cause(ctx))
	}
	return errors.Join(errs...)
}

// apply applies one parked message and removes it, or notes why it fails.
func (r *redrive) apply(ctx context.Context, m ParkedMessage, mark *projection.Halted) error {
	change, writes, reason, err := r.gaps.decide(ctx, r.decider, &m)
	if err != nil {
		return err
	}
	if reason != "" {
		r.FailedEventID, r.Reason = m.ID, reason
		return nil
	}
	for i := range writes {
		// A document of many aggregates has no mark, and none would take it away.
		if !writes[i].Keyed {
			writes[i].Halted = mark
		}
	}
	count, err := r.write(ctx, &m, &change.Event, writes)
	if err != nil || r.Reason != "" {
		return err
	}
	if err := r.gaps.passed(ctx, change.Version); err != nil {
		return err
	}
	if m.Returned && count != &r.Lost {
		if err := r.parked.Reapplied(ctx, &change.Event, changers(writes)); err != nil {
			return err
		}
	}
	if _, err := r.parked.Unpark(ctx, &change.Event); err != nil {
		return err
	}
	*count++
	return nil
}

// changers are the projections that writes are of.
func changers(writes []projection.Write) (names []string) {
	for i := range writes {
		if !slices.Contains(names, writes[i].Projection) {
			names = append(names, writes[i].Projection)
		}
	}
	return names
}

// write stores an event, unless it was overtaken: of what is refused nothing is
// written. It returns what counts the event, or notes why it fails.
func (r *redrive) write(ctx context.Context, m *ParkedMessage, e *contract.Event, writes []projection.Write) (count *int, err error) {
	if err := r.mending.look(ctx); err != nil {
		return nil, err
	}
	r.mending.mark(writes)
	if count, err = r.overtaken(ctx, m, e, writes); err != nil || r.Reason != "" || count != nil {
		return count, err
	}
	outcomes, err := r.store.Write(ctx, writes)
	if rejected, ok := asRejected(err); ok {
		r.FailedEventID, r.Reason = e.ID, rejected.Reason
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("apply event %q of aggregate %q: %w", e.ID, r.AggregateID, err)
	}
	if slices.Contains(outcomes, Repeated) {
		// Asked again: a replica that knew nothing of the halt may have come between.
		if count, err = r.overtaken(ctx, m, e, writes); err != nil || r.Reason != "" || count != nil {
			return count, err
		}
	}
	switch summed(writes, outcomes) {
	case Applied:
		return &r.Applied, nil
	case Repeated:
		return &r.Repeated, nil
	}
	return &r.PassedBy, nil
}

// overtaken notes why an event cannot be applied any more, or returns what counts it
// where it is not to be: nil where it is.
func (r *redrive) overtaken(ctx context.Context, m *ParkedMessage, e *contract.Event, writes []projection.Write) (count *int, err error) {
	now, reason, err := r.gaps.overtaken(ctx, r.parked, m, e, writes)
	switch {
	case err != nil:
		return nil, err
	case reason != "":
		r.FailedEventID, r.Reason = e.ID, reason
	case now == lost:
		return &r.Lost, nil
	case now == taken:
		return &r.Repeated, nil
	}
	return nil, nil
}

// unfollowed says which projection would miss a parked message for good if it
// were taken for done here; nothing where none would. That nobody follows an
// event is no reason to take it away: it may be the wrong environment.
func unfollowed(m *ParkedMessage, eventType string, followers []string) string {
	for _, name := range m.FollowedBy {
		if !slices.Contains(followers, name) {
			return fmt.Sprintf("projection %q followed the event when it was parked, and no projection of that name follows %q here: "+
				"use the environment of the projectors that parked it, or give it up with parked discard or --accept-unfollowed", name, eventType)
		}
	}
	if m.FollowedBy == nil && len(followers) == 0 {
		return fmt.Sprintf("no projection follows %q here, and it was not noted whether one did when the event was parked: "+
			"use the environment of the projectors that parked it, or give it up with parked discard or --accept-unfollowed", eventType)
	}
	return ""
}
