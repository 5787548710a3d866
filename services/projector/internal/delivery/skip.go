package delivery

import (
	"context"
	"errors"
	"slices"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/session"
)

// skips treats items that cannot be applied as the projections' policies say.
//
// A skipped item has a batch of its own: the brake counts it before it is stored, and a
// large record shares its transaction with no other.
type skips struct {
	policed Policed // nil where each failure halts the aggregate
	brake   *Brake
	// waiting is a message that waits for a batch of its own, and decided are its writes:
	// a projection that takes long to fail is not asked again.
	waiting *session.Message
	decided []projection.Write
}

// begin forgets what earlier messages have left: a message may be where another one was.
func (s *skips) begin() { s.waiting, s.decided = nil, nil }

// decide returns the writes of a message that waited, or has the decider decide.
func (s *skips) decide(ctx context.Context, decider decides, it *item) (writes []projection.Write, failed, err error) {
	if it.message == s.waiting {
		writes = s.decided
		s.begin()
		return writes, nil, nil
	}
	return decide(ctx, decider, it.change)
}

// ReasonNotApplied is why a message is dead-lettered by a policy. Its event is recorded.
const ReasonNotApplied = "NotApplied"

// deadly returns the writes of the first item, of which processes have died, and nil where
// the batch ends before it. One that cannot be read halts, whatever the policies are.
func (s *skips) deadly(b *batch) []projection.Write {
	it := &b.items[0]
	if s == nil || s.policed == nil || it.change == nil {
		b.stop(0, poisoned, b.deadly)
		return nil
	}
	writes, err := s.policed.Skip(it.change, projection.Crash, b.deadly, "")
	return s.take(b, 0, writes, err)
}

// take returns the writes that take the place of item i's own, and nil where the batch
// ends before it. An item behind another one waits for a batch of its own.
func (s *skips) take(b *batch, i int, writes []projection.Write, err error) []projection.Write {
	left := slices.IndexFunc(writes, leavesOut)
	switch {
	case err != nil:
		b.refuse(i, err)
	case i > 0:
		s.waiting, s.decided = b.items[i].message, writes
		b.stop(i, again, "")
	case b.items[0].message.Weight() > mostRecorded && left >= 0:
		b.refuse(0, halting(&writes[left]))
	default:
		b.stop(1, again, "")
		for w := range writes {
			if writes[w].Skipped != nil && b.items[i].message.Weight() <= mostRecorded {
				writes[w].Skipped.Message = &b.items[i].message.Message
			}
		}
		return writes
	}
	return nil
}

// halting is the failure that halts an aggregate in place of a skip. Nobody knows which
// projection processes have died of.
func halting(w *projection.Write) *projection.Failure {
	f := &projection.Failure{Projection: w.Projection, Class: w.Skipped.Class, Action: projection.Halt, Err: errors.New(w.Skipped.Reason)}
	if f.Class == projection.Crash {
		f.Projection = ""
	}
	return f
}

// mostRecorded is the weight in bytes up to which a message is recorded whole; a document
// has room for no more. A larger message is not skipped but halts its aggregate; where the
// policy is to dead-letter it, its only copy is in the dead letters.
const mostRecorded = 15 << 20

// skipping tells whether an event is skipped by one of its writes.
func skipping(writes []projection.Write) bool {
	return slices.ContainsFunc(writes, func(w projection.Write) bool { return w.Skipped != nil })
}

// leavesOut tells whether the record is all that is left of the write's event.
func leavesOut(w projection.Write) bool {
	return w.Skipped != nil && w.Skipped.Action == projection.Skip
}

// refused goes on without the write that the store refuses, or ends the batch there.
func (s *skips) refused(b *batch, r *RejectedError) {
	n, name := b.owner(r.Index), b.writes[r.Index].Projection
	mine := func(w projection.Write) bool { return w.Projection == name }
	its := b.writes[b.items[n].first : b.items[n].first+b.items[n].count]
	// Where the replacement itself is refused, the event's content is not the cause.
	tried := slices.ContainsFunc(its, func(w projection.Write) bool { return mine(w) && w.Skipped != nil })
	if s.policed == nil || tried {
		b.stop(n, poisoned, r.Reason)
		b.blamed, b.refused = name, !tried && r.Class != ""
		return
	}
	writes, err := s.policed.Skip(b.items[n].change, r.Class, r.Reason, name)
	writes = s.take(b, n, append(slices.DeleteFunc(slices.Clone(its), mine), writes...), err)
	if writes == nil {
		if r.Class == projection.Store { // alone it may be stored
			s.begin()
		}
		return
	}
	for w := range writes {
		writes[w].By = its[0].By
	}
	b.writes = writes
	b.items[0].count, b.outcomes = len(b.writes), nil
}

// counted calls f, which stores the writes. Where they skip an event, the brake counts it
// first, and f is not called while the brake is on.
func (s *skips) counted(ctx context.Context, writes []projection.Write, f func() error) error {
	if !skipping(writes) {
		return f()
	}
	return s.brake.take(ctx, f)
}

// skipped returns the verdict and the fate of an item whose writes are stored, where a
// projection lacks it. It counts the item once, and not when it comes again. A projection
// that has applied it before lacks nothing.
func (v *verdicts) skipped(b *batch, it *item) (verdict session.Verdict, fate Fate) {
	for place := it.first; place < it.first+it.count; place++ {
		w := &b.writes[place]
		if w.Skipped == nil || b.outcomes[place] == Repeated {
			continue
		}
		if w.Skipped.Action == projection.DeadLetter {
			verdict, fate = session.Verdict{DeadLetter: true, Reason: ReasonNotApplied, Description: w.Skipped.Describe(w.Projection)}, FateDeadLettered
		} else if fate == "" {
			fate = FateSkipped
		}
		if b.outcomes[place] == Applied {
			v.count(it, w)
		}
	}
	return verdict, fate
}

// count counts an event that is skipped for the first time.
func (v *verdicts) count(it *item, w *projection.Write) {
	v.counts.Skipped.Add(1)
	if w.Skipped.Action == projection.DeadLetter {
		v.counts.DeadLettered.Add(1)
	}
	v.log.Error().Str("aggregate_id", it.event.AggregateID).Str("event_id", it.event.ID).Str("event_type", it.event.Type).
		Str("projection", w.Projection).Str("class", string(w.Skipped.Class)).Str("action", string(w.Skipped.Action)).Str("reason", w.Skipped.Reason).
		Msg("an event is skipped, its document lacks it: see projector skipped list")
}
