package delivery

import (
	"context"
	"errors"
	"fmt"

	"changerelay/services/projector/internal/session"
)

// halt stops the aggregate at the failed item, and parks it with all that
// follow. The items before it are stored. Where a missing version is why, the
// brake is not asked. For one that was discarded nothing stops.
func (h *hold) halt(ctx context.Context, b *batch, failed int, reason string, missing bool) ([]session.Verdict, error) {
	if b.items[failed].fills {
		return h.leave(b, failed, reason)
	}
	before := h.done(b, failed)
	event := *b.items[failed].event
	discarded, err := h.parking.Discarded(ctx, &event)
	if err != nil {
		return before, err
	}
	if discarded {
		h.discarded(&b.items[failed])
		return append(before, session.Verdict{}), nil
	}
	store := func() (HaltID, error) {
		return h.parking.Halt(ctx, Halt{Event: event, Reason: reason, Uncounted: missing})
	}
	stored, err := h.halted(ctx, store, missing)
	if err != nil {
		return before, fmt.Errorf("halt aggregate %q: %w", h.aggregate, err)
	}
	h.counts.Halts.Add(1)
	h.log.Error().Str("aggregate_id", h.aggregate).Str("event_id", event.ID).Str("event_type", event.Type).
		Str("reason", reason).Msg("an event cannot be projected, its aggregate is halted")
	h.halts.add(h.aggregate, stored)
	after, err := h.park(ctx, b, failed, reason, true)
	return append(before, after...), err
}

// leave gives the session back before an item that only fills a version, and that can
// not be taken yet. What follows waits behind it.
func (h *hold) leave(b *batch, n int, reason string) ([]session.Verdict, error) {
	h.log.Warn().Str("aggregate_id", h.aggregate).Str("event_id", b.items[n].event.ID).Str("reason", reason).
		Msg("a version that is filled waits for an event, and its aggregate with it")
	return h.done(b, n), fmt.Errorf("fill a version with event %q of aggregate %q: %s: %w", b.items[n].event.ID, h.aggregate, reason, session.ErrNotYet)
}

// discarded counts a message that came again after an operator had discarded its
// event: it is completed, and nothing of it is applied.
func (h *hold) discarded(it *item) {
	h.forget()
	h.counts.Discarded.Add(1)
	h.log.Info().Str("aggregate_id", h.aggregate).Str("event_id", it.event.ID).Str("event_type", it.event.Type).
		Msg("an event that was discarded has come again, its message is completed")
	it.traced(FateDiscarded, "")
}

// forget drops what the hold knows of versions: from here on others may deal with
// events of its aggregate.
func (h *hold) forget() {
	h.chain.end()
	h.links = nil
}

// halted stores a halt, as far as the brake allows.
func (h *hold) halted(ctx context.Context, store func() (HaltID, error), missing bool) (HaltID, error) {
	if missing {
		return store()
	}
	return h.brake.halt(ctx, store)
}

// park keeps the items from the first on aside, and waits until every replica knows
// of the halt: then they may be completed. They are kept before that, so that a
// redrive which comes meanwhile finds them, and lifts no halt that nothing is
// parked under yet. reason is the failed one's, or says why all of them are parked.
func (h *hold) park(ctx context.Context, b *batch, first int, reason string, firstFailed bool) ([]session.Verdict, error) {
	verdicts, err := h.keep(ctx, b, first, reason, firstFailed)
	if len(verdicts) == 0 {
		return nil, err
	}
	if unknown := h.halts.settle(ctx, h.aggregate); unknown != nil {
		return nil, unknown
	}
	return verdicts, err
}

// keep keeps the items from the first on aside, as far as it gets. A redrive may deal
// with them, and with more, before this hold applies something again.
func (h *hold) keep(ctx context.Context, b *batch, first int, reason string, firstFailed bool) ([]session.Verdict, error) {
	h.forget()
	verdicts := make([]session.Verdict, 0, len(b.items)-first)
	for i := first; i < len(b.items) && !b.items[i].fills; i++ {
		it := &b.items[i]
		if it.event == nil {
			verdicts = append(verdicts, h.refuse(it))
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
// it cannot be kept.
func (h *hold) parkOne(ctx context.Context, it *item, reason string, failed bool) (session.Verdict, error) {
	if ctx.Err() != nil {
		return session.Verdict{}, context.Cause(ctx)
	}
	parked := Parked{Message: *it.message, Event: *it.event, Failed: failed, Reason: reason}
	if it.message.OtherBody != "" {
		return h.parkWithoutBody(ctx, it, parked, "its body is an AMQP value or sequence, not data")
	}
	err := h.parking.Park(ctx, []Parked{parked})
	if rejected, ok := asRejected(err); ok {
		return h.parkWithoutBody(ctx, it, parked, rejected.Reason)
	}
	if errors.Is(err, ErrDiscarded) {
		h.discarded(it)
		return session.Verdict{}, nil
	}
	if err != nil {
		return session.Verdict{}, fmt.Errorf("park a message of aggregate %q: %w", h.aggregate, err)
	}
	h.counts.Parked.Add(1)
	it.traced(FateParked, reason)
	return session.Verdict{}, nil
}

// parkWithoutBody sends a message that cannot be kept to the dead letters, and
// parks what it says of itself in its place: a redrive stops there, and does not
// apply what follows as if the message had never been.
func (h *hold) parkWithoutBody(ctx context.Context, it *item, p Parked, problem string) (session.Verdict, error) {
	v := session.Verdict{DeadLetter: true, Reason: reasonTooBig, Description: p.Reason + "; cannot be parked: " + problem}
	p.Message.Body, p.Message.Properties = nil, nil
	p.Reason += "; cannot be kept here, its body is in the dead letters: " + problem
	err := h.parking.Park(ctx, []Parked{p})
	if _, stillTooBig := asRejected(err); err != nil && !stillTooBig {
		return session.Verdict{}, fmt.Errorf("park a message of aggregate %q: %w", h.aggregate, err)
	}
	h.counts.Refused.Add(1)
	it.traced(FateDeadLettered, v.Description)
	return v, nil
}
