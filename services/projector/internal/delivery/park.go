package delivery

import (
	"context"
	"fmt"

	"changerelay/services/projector/internal/session"
)

// halt brings the aggregate to a stand at the failed item, and parks it with
// all that follow. The items before it are stored.
func (h *hold) halt(ctx context.Context, b *batch, failed int, reason string) ([]session.Verdict, error) {
	before := h.done(b, failed)
	event := b.items[failed].change.Event
	event.Data = nil
	if err := h.parking.Halt(ctx, Halt{Event: event, Reason: reason}); err != nil {
		return before, fmt.Errorf("halt aggregate %q: %w", h.aggregate, err)
	}
	h.counts.Halts.Add(1)
	h.log.Error().Str("aggregate_id", h.aggregate).Str("event_id", event.ID).Str("event_type", event.Type).
		Str("reason", reason).Msg("an event can not be projected, its aggregate is halted")
	h.halts.add(h.aggregate)
	after, err := h.park(ctx, b, failed, reason, true)
	return append(before, after...), err
}

// park keeps the items from the first on aside. reason is the failed one's, or
// says why all of them are parked.
func (h *hold) park(ctx context.Context, b *batch, first int, reason string, firstFailed bool) ([]session.Verdict, error) {
	if err := h.halts.settle(ctx, h.aggregate); err != nil {
		return nil, err
	}
	verdicts := make([]session.Verdict, 0, len(b.items)-first)
	for i := first; i < len(b.items); i++ {
		it := &b.items[i]
		if it.change == nil {
			h.counts.Refused.Add(1)
			verdicts = append(verdicts, it.refusal)
			it.traced(FateDeadLettered, it.refusal.Description)
			continue
		}
		failed := firstFailed && i == first
		verdict, err := h.parkOne(ctx, it, reason, failed)
		if err != nil {
			return verdicts, err
		}
		if failed {
			reason = "an earlier event of the aggregate is parked"
		}
		verdicts = append(verdicts, verdict)
	}
	return verdicts, nil
}

// parkOne parks one message, or says that it goes to the dead letters because
// it can not be kept.
func (h *hold) parkOne(ctx context.Context, it *item, reason string, failed bool) (session.Verdict, error) {
	if ctx.Err() != nil {
		return session.Verdict{}, context.Cause(ctx)
	}
	event := it.change.Event
	event.Data = nil
	err := h.parking.Park(ctx, []Parked{{Message: *it.message, Event: event, Failed: failed, Reason: reason}})
	if rejected, ok := asRejected(err); ok {
		h.counts.Refused.Add(1)
		v := session.Verdict{DeadLetter: true, Reason: reasonTooBig, Description: reason + "; can not be parked: " + rejected.Reason}
		it.traced(FateDeadLettered, v.Description)
		return v, nil
	}
	if err != nil {
		return session.Verdict{}, fmt.Errorf("park a message of aggregate %q: %w", h.aggregate, err)
	}
	h.counts.Parked.Add(1)
	it.traced(FateParked, reason)
	return session.Verdict{}, nil
}
