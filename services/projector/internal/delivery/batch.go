package delivery

import (
	"errors"
	"slices"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/session"
)

// batch is what goes through the stages together: messages of one aggregate, in order.
//
// The items before end go on, and a stage looks at no others. A stage that does not let
// an item on moves the end before it and says what is to become of the rest. The end
// moves to the front alone, so what was said last is of the first item that does not go
// on, and nothing that stands behind it is applied.
type batch struct {
	aggregate string
	items     []item
	end       int
	rest      rest
	// reason is why the item at the end does not go on, blamed the projection that is to
	// blame, if one is.
	reason, blamed string
	// refused tells that a projection, or the store, refuses the event of the item at the end
	// for its content: it would not be applied another time either.
	refused bool
	// err is why the rest has no verdicts and comes again.
	err error

	// deadly is why the first item is not tried.
	deadly string
	writes []projection.Write
	// outcomes belong to writes. Once a write is known to be stored it stays so.
	outcomes []Outcome
	// verdicts are those over the first items.
	verdicts []session.Verdict
}

// rest is what is to become of a batch from its end on.
type rest byte

// What is to become of the rest.
const (
	// again: it comes again.
	again rest = iota
	// behind: it is parked, the aggregate is halted.
	behind
	// poisoned: its first item cannot be applied, which halts the aggregate.
	poisoned
	// stopping: its first item cannot be applied, which stops all projectors.
	stopping
	// gapped: a version is missing before its first item. That halts the aggregate as well,
	// and does not count for the brake.
	gapped
)

// item is one message of a batch.
type item struct {
	message *session.Message
	// event is the message's event, without its data; nil when the message belongs
	// to no aggregate that could be named.
	event *contract.Event
	// refusal says how the message is dead-lettered, if it is.
	refusal session.Verdict
	// change is nil when the message cannot be read; problem says why.
	change  *projection.Change
	problem string
	// fills is the name of the version that the event fills, and nothing else; "" where it
	// fills none. It is taken in its place in the session or waits there: what is parked is
	// the group's.
	fills string
	// skipped are the writes of an item that no projection decides about; nil for none.
	skipped []projection.Write
	// first and count say which writes are the item's.
	first, count int
	// span follows the attempt; nil where nobody traces, and once it has ended.
	span Span
}

// fill has the batch begin with messages.
func (b *batch) fill(messages []session.Message) {
	b.items, b.end = make([]item, len(messages)), len(messages)
	b.verdicts = make([]session.Verdict, 0, len(messages))
	for i := range messages {
		b.items[i].message = &messages[i]
	}
}

// cut leaves the items from n on to another batch.
func (b *batch) cut(n int) { b.items, b.end = b.items[:n], n }

// stop ends the batch before item n.
func (b *batch) stop(n int, rest rest, reason string) {
	b.end, b.rest, b.reason, b.blamed, b.refused, b.err = n, rest, reason, "", false, nil
}

// refuse ends the batch before item n, which is not applied, and blames whom a failure
// blames.
func (b *batch) refuse(n int, why error) {
	b.stop(n, poisoned, why.Error())
	if failure, is := errors.AsType[*projection.Failure](why); is {
		b.blamed = failure.Projection
		b.refused = failure.Class == projection.Evaluate || failure.Class == projection.Store
		if failure.Action == projection.Stop {
			b.rest = stopping
		}
	}
}

// fail ends the batch before item n with an error.
func (b *batch) fail(n int, err error) { b.end, b.rest, b.err = n, again, err }

// going are the writes of what goes on.
func (b *batch) going() (writes []projection.Write) {
	if b.end > 0 {
		last := &b.items[b.end-1]
		writes = b.writes[:last.first+last.count]
	}
	return writes
}

// owner is the place of the item that a write belongs to.
func (b *batch) owner(write int) int {
	owner := 0
	for owner < len(b.items) && write >= b.items[owner].first+b.items[owner].count {
		owner++
	}
	return owner
}

// note merges outcomes of the first writes into what is known.
func (b *batch) note(outcomes []Outcome) {
	if b.outcomes == nil {
		b.outcomes = make([]Outcome, len(b.writes))
	}
	for i, outcome := range outcomes {
		if b.outcomes[i] == Unknown {
			b.outcomes[i] = outcome
		}
	}
}

// stored is how many of the items that go on, from the first on, have all their
// writes stored.
func (b *batch) stored() int {
	known := 0
	for known < min(len(b.going()), len(b.outcomes)) && b.outcomes[known] != Unknown {
		known++
	}
	return min(b.owner(known), b.end)
}

// outcome sums up the writes of an item: applied when any was. One that is skipped by those
// alone that have applied it before is a repeat.
func (b *batch) outcome(it *item) Outcome {
	outcomes := b.outcomesOf(it)
	writes := b.writes[it.first : it.first+len(outcomes)]
	sum := summed(writes, outcomes)
	if sum == Unknown && skipping(writes) && slices.Contains(outcomes, Repeated) {
		return Repeated
	}
	return sum
}

// outcomesOf are those of an item's writes, as far as they are known.
func (b *batch) outcomesOf(it *item) []Outcome {
	return b.outcomes[min(it.first, len(b.outcomes)):min(it.first+it.count, len(b.outcomes))]
}

// summed sums up the outcomes of writes; Unknown where no document is asked for.
func summed(writes []projection.Write, outcomes []Outcome) (sum Outcome) {
	for i, outcome := range outcomes {
		if writes[i].Changes() && sum != Applied {
			sum = outcome
		}
	}
	return sum
}

func asRejected(err error) (*RejectedError, bool) {
	return errors.AsType[*RejectedError](err)
}
