package delivery

import (
	"errors"
	"strings"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/session"
)

// batch is what one call of Apply works on.
type batch struct {
	items  []item
	writes []projection.Write
	// outcomes belong to writes. Once a write is known to be stored it stays so.
	outcomes []Outcome
}

// item is one message of a batch.
type item struct {
	message *session.Message
	// event is the message's event, without its data; nil when the message belongs
	// to no aggregate that could be named. Then refusal says how it is dead-lettered.
	event   *contract.Event
	refusal session.Verdict
	// change is nil when the message cannot be read; problem says why.
	change  *projection.Change
	problem string
	// fills: the message is for a version that is filled, and for nothing else. It is
	// taken in its place in the session or waits there: what is parked is the group's.
	fills bool
	// first and count say which writes are the item's.
	first, count int
	// span follows the attempt; nil where nobody traces, and once it has ended.
	span Span
}

// Reasons of dead-lettered messages. ReasonForeign says that it is no event.
const (
	ReasonForeign = "ForeignMessage"
	reasonInvalid = "InvalidMessage"
	reasonTooBig  = "NotParkable"
)

// read decodes messages.
func (h *hold) read(messages []session.Message) *batch {
	b := &batch{items: make([]item, len(messages)), writes: make([]projection.Write, 0, len(messages))}
	for i := range messages {
		b.items[i].message = &messages[i]
		b.items[i].read(messages[i].Message)
		b.items[i].fills = fills(contract.ResendOf(messages[i].Message), h.filling)
	}
	return b
}

// read decodes a message as far as it can be.
func (it *item) read(m contract.Message) {
	change, err := decode(m)
	if err == nil {
		change.Event.Data = nil
		it.change, it.event = change, &change.Event
		return
	}
	if event, placed := contract.Place(m); placed {
		it.event, it.problem = &event, "the message cannot be read: "+oneLine(err)
		return
	}
	it.refusal = refusal(m, err)
}

func decode(m contract.Message) (*projection.Change, error) {
	event, err := contract.Decode(m, contract.DecodeOptions{MaxDataBytes: maxDataBytes})
	if err != nil {
		return nil, err
	}
	return projection.Read(event)
}

// maxDataBytes bounds an event's data. A read document cannot be larger, and
// neither can the change it comes from.
const maxDataBytes = 16 << 20

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// refusal is the verdict over a message that belongs to no aggregate.
func refusal(m contract.Message, err error) session.Verdict {
	v := session.Verdict{
		DeadLetter:  true,
		Reason:      ReasonForeign,
		Description: oneLine(err),
	}
	for name := range m.Properties {
		if strings.HasPrefix(name, "cloudEvents") {
			v.Reason = reasonInvalid
		}
	}
	return v
}

// end is how many writes the first n items have.
func (b *batch) end(n int) int {
	if n == 0 {
		return 0
	}
	return b.items[n-1].first + b.items[n-1].count
}

// owner is the place of the item that a write belongs to.
func (b *batch) owner(write int) int {
	for i := range b.items {
		if write < b.items[i].first+b.items[i].count {
			return i
		}
	}
	return len(b.items)
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

// stored is how many of the first n items, from the first on, have all their
// writes stored.
func (b *batch) stored(n int) int {
	for i := range n {
		for w := b.items[i].first; w < b.items[i].first+b.items[i].count; w++ {
			if b.outcomes == nil || b.outcomes[w] == Unknown {
				return i
			}
		}
	}
	return n
}

// outcome sums up the writes of an item: applied when any was.
func (b *batch) outcome(it *item) Outcome {
	first, end := min(it.first, len(b.outcomes)), min(it.first+it.count, len(b.outcomes))
	return summed(b.writes[first:end], b.outcomes[first:end])
}

// summed sums up the outcomes of writes; Unknown where no document is asked for.
func summed(writes []projection.Write, outcomes []Outcome) Outcome {
	sum := Unknown
	for i, outcome := range outcomes {
		switch {
		case !writes[i].Changes():
		case outcome == Applied:
			return Applied
		default:
			sum = outcome
		}
	}
	return sum
}

// done gives the verdicts over the first n items, whose writes are stored, and
// counts them.
func (h *hold) done(b *batch, n int) []session.Verdict {
	verdicts := make([]session.Verdict, n)
	for i := range n {
		it := &b.items[i]
		if it.event == nil {
			verdicts[i] = h.refuse(it)
			continue
		}
		outcome := b.outcome(it)
		if !it.fills {
			h.follow(it.event.Version, outcome)
		}
		switch outcome {
		case Applied:
			h.counts.Applied.Add(1)
			if !it.fills {
				h.observer.Readable(it.event)
			}
			it.traced(FateApplied, "")
		case Repeated:
			h.counts.Repeated.Add(1)
			it.traced(FateRepeated, "")
		case Unknown:
			h.counts.PassedBy.Add(1)
			it.traced(FatePassedBy, "")
		}
	}
	return verdicts
}

// refuse is the verdict over an item that belongs to no aggregate.
func (h *hold) refuse(it *item) session.Verdict {
	h.counts.Refused.Add(1)
	it.traced(FateDeadLettered, it.refusal.Description)
	return it.refusal
}

// follow counts the versions that are missing before an event.
func (h *hold) follow(next contract.Version, outcome Outcome) {
	if missing := h.chain.follow(next, outcome); missing > 0 {
		h.counts.VersionGaps.Add(missing)
		h.log.Warn().Str("aggregate_id", h.aggregate).Int64("version", next.Number).Int64("missing", missing).Msg("versions are missing before an event")
	}
}

func asRejected(err error) (*RejectedError, bool) {
	return errors.AsType[*RejectedError](err)
}
