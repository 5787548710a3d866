package delivery

import (
	"github.com/rs/zerolog"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/session"
)

// verdicts gives the verdicts over what has gone through all stages, and counts them.
type verdicts struct {
	versions *versions
	counts   *Counts
	observer Observer
	log      zerolog.Logger
}

// give gives the verdicts over the items before the end, which are stored.
func (v *verdicts) give(b *batch) {
	for i := range b.items[:b.end] {
		it := &b.items[i]
		var verdict session.Verdict
		if it.event == nil {
			verdict = v.refused(it)
		} else {
			var fate Fate
			verdict, fate = v.skipped(b, it)
			v.stored(it, b.outcome(it), fate)
			v.observer.Projected(it.event, it.fills != "", b.writes[it.first:it.first+it.count], b.outcomesOf(it))
		}
		b.verdicts = append(b.verdicts, verdict)
	}
}

// stored counts an item whose writes are stored. fate is why a projection lacks it; ""
// where none does.
func (v *verdicts) stored(it *item, outcome Outcome, fate Fate) {
	if it.fills == "" {
		v.follow(it.event, outcome)
	}
	if fate != "" {
		it.traced(fate, "")
	}
	switch outcome {
	case Applied:
		v.counts.Applied.Add(1)
		if it.fills == "" {
			v.observer.Readable(it.event)
		}
		it.traced(FateApplied, "")
	case Repeated:
		v.counts.Repeated.Add(1)
		it.traced(FateRepeated, "")
	case Unknown:
		if fate == "" {
			v.counts.PassedBy.Add(1)
			it.traced(FatePassedBy, "")
		}
	}
}

// follow counts the versions that are missing before an event.
func (v *verdicts) follow(e *contract.Event, outcome Outcome) {
	if missing := v.versions.chain.follow(e.Version, outcome); missing > 0 {
		v.counts.VersionGaps.Add(missing)
		v.log.Warn().Str("aggregate_id", v.versions.aggregate).Int64("version", e.Version.Number).Int64("missing", missing).Msg("versions are missing before an event")
	}
}

// refused is the verdict over an item that belongs to no aggregate.
func (v *verdicts) refused(it *item) session.Verdict {
	v.counts.Refused.Add(1)
	it.traced(FateDeadLettered, it.refusal.Description)
	return it.refusal
}

// discarded counts a message that came again after an operator had discarded its
// event: it is completed, and nothing of it is applied.
func (v *verdicts) discarded(it *item) {
	v.versions.forget()
	v.counts.Discarded.Add(1)
	v.log.Info().Str("aggregate_id", v.versions.aggregate).Str("event_id", it.event.ID).Str("event_type", it.event.Type).
		Msg("an event that was discarded has come again, its message is completed")
	it.traced(FateDiscarded, "")
}
