package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/session"
)

// parker deals with the rest of a batch: it halts the aggregate where its first item
// is why, and keeps the messages aside.
type parker struct {
	verdicts *verdicts
	versions *versions
	deps     *Deps
}

// reasonBehind is why a message is parked that did not fail.
const reasonBehind = "an earlier event of the aggregate is parked"

// park gives the verdicts over the rest, as far as it gets.
func (p *parker) park(ctx context.Context, b *batch) {
	switch {
	case b.rest == again:
	case b.items[b.end].fills != "":
		p.leave(ctx, b)
	case b.rest == behind:
		p.join(ctx, b)
	default:
		p.halt(ctx, b)
	}
}

// leave gives the session back before an item that only fills a version, and that can
// not be taken yet. What follows waits behind it, unless it is what the item waits for, or
// the item's event is refused and was discarded.
func (p *parker) leave(ctx context.Context, b *batch) {
	if passed, err := p.pass(ctx, b); passed || err != nil {
		b.fail(b.end, cmp.Or(err, ErrLifted))
		return
	}
	if passed, err := p.passDiscarded(ctx, b); passed || err != nil {
		b.err = err
		return
	}
	event := b.items[b.end].event
	p.deps.Log.Warn().Str("aggregate_id", b.aggregate).Str("event_id", event.ID).Str("reason", b.reason).
		Msg("a version that is filled waits for an event, and its aggregate with it; where the projection cannot apply it, onError: skip lets the version go on")
	b.fail(b.end, fmt.Errorf("fill a version with event %q of aggregate %q: %s: %w", event.ID, b.aggregate, b.reason, session.ErrNotYet))
}

// pass parks the live event that has the missing version of a halted aggregate, where it
// stands behind what only fills a version, and applies what is parked. It tells whether the
// halt is over. The message is not settled out of its turn: it is a repeat when it comes.
func (p *parker) pass(ctx context.Context, b *batch) (lifted bool, err error) {
	if b.rest != behind || !p.versions.on() {
		return false, nil
	}
	it, err := p.versions.missed(ctx, b.items[b.end:])
	if it == nil || err != nil || it.message.OtherBody != "" {
		return false, err
	}
	p.versions.forget()
	err = p.deps.Parking.Park(ctx, []Parked{{Message: *it.message, Event: *it.event, Reason: reasonBehind}})
	if _, refused := asRejected(err); refused || errors.Is(err, ErrDiscarded) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("park a message of aggregate %q: %w", b.aggregate, err)
	}
	return p.redrive(ctx, b)
}

// passDiscarded has a version that is filled pass by an event that it refuses, and that an
// operator has discarded, and tells whether it has. The version goes on from there, as the
// current one did. An event that it may apply another time is waited for: a rebuild brings
// back what was discarded.
func (p *parker) passDiscarded(ctx context.Context, b *batch) (passed bool, err error) {
	if !b.refused {
		return false, nil
	}
	it := &b.items[b.end]
	discarded, err := p.deps.Parking.Discarded(ctx, it.event)
	if err != nil || !discarded {
		return false, err
	}
	writes, err := begin(p.deps.Filling).Of(ctx, it.event, []projection.Write{{Projection: it.fills, Keyed: true, Passed: true, Event: it.event}})
	if err == nil {
		_, err = p.deps.Store.Write(ctx, writes)
	}
	if err != nil {
		return false, fmt.Errorf("pass by event %q of aggregate %q, which was discarded: %w", it.event.ID, b.aggregate, err)
	}
	p.verdicts.discarded(it)
	b.verdicts = append(b.verdicts, session.Verdict{})
	return true, nil
}

// halt halts the aggregate at the first item of the rest, and parks it with all that
// follow, or stops the projectors before it. For one that was discarded nothing stops.
func (p *parker) halt(ctx context.Context, b *batch) {
	it := &b.items[b.end]
	discarded, err := p.deps.Parking.Discarded(ctx, it.event)
	switch {
	case err != nil:
		b.fail(b.end, err)
	case discarded:
		p.verdicts.discarded(it)
		b.verdicts = append(b.verdicts, session.Verdict{})
	case b.rest == stopping && p.deps.Brake != nil:
		b.fail(b.end, p.deps.Brake.stop(ctx, Stop{Event: *it.event, Reason: b.reason, Projection: b.blamed}))
	default:
		p.store(ctx, b, it)
	}
}

// store stores the halt, as far as the brake allows. Where a missing version is why, the
// brake is not asked.
func (p *parker) store(ctx context.Context, b *batch, it *item) {
	brake := p.deps.Brake
	if b.rest == gapped {
		brake = nil
	}
	halt, err := brake.halt(ctx, func() (HaltID, error) {
		return p.deps.Parking.Halt(ctx, Halt{Event: *it.event, Reason: b.reason, Projection: b.blamed, Uncounted: b.rest == gapped})
	})
	if err != nil {
		b.fail(b.end, fmt.Errorf("halt aggregate %q: %w", b.aggregate, err))
	} else {
		p.halted(ctx, b, it, halt)
	}
}

// halted parks the rest under a halt that is stored.
func (p *parker) halted(ctx context.Context, b *batch, it *item, halt HaltID) {
	p.verdicts.counts.Halts.Add(1)
	if b.blamed != "" {
		p.verdicts.observer.Halted(b.blamed)
	}
	p.deps.Log.Error().Str("aggregate_id", b.aggregate).Str("event_id", it.event.ID).Str("event_type", it.event.Type).
		Str("projection", b.blamed).Str("reason", b.reason).Msg("an event cannot be projected, its aggregate is halted")
	p.deps.Halts.add(b.aggregate, halt)
	p.keep(ctx, b, Parked{Failed: true, Reason: b.reason})
}

// join parks the rest of a halted aggregate. With the version that was missing what
// is parked follows, and is applied. Nothing is done before that is done: a parked
// message that is settled is looked at no more.
func (p *parker) join(ctx context.Context, b *batch) {
	p.keep(ctx, b, Parked{Reason: reasonBehind})
	if b.err == nil {
		b.err = p.close(ctx, b)
	}
	if p.versions.on() && b.err != nil && !errors.Is(b.err, ErrLifted) {
		b.verdicts = nil
	}
}

// close applies what is parked, where the batch has the version that was missing.
func (p *parker) close(ctx context.Context, b *batch) error {
	closed, err := p.versions.closedBy(ctx, b.items)
	if err == nil && closed {
		_, err = p.redrive(ctx, b)
	}
	return err
}

// redrive applies what is parked, and tells whether the halt is over.
func (p *parker) redrive(ctx context.Context, b *batch) (lifted bool, err error) {
	gaps := Gaps{Versions: p.deps.Versions, Filling: p.deps.Filling}
	done, err := Redrive(ctx, p.deps.Decider, p.deps.Store, p.deps.Parked, gaps, b.aggregate)
	if err == nil {
		p.deps.Log.Info().Str("aggregate_id", b.aggregate).Int("applied", done.Applied).Bool("lifted", done.Lifted).
			Str("reason", done.Reason).Msg("a missing version has come, what was parked is applied")
	}
	return done.Lifted, err
}

// keep keeps the rest aside, the first item as given, and waits until every replica knows
// of the halt: then they may be completed. They are kept before that, so that a
// redrive which comes meanwhile finds them, and lifts no halt that nothing is
// parked under yet.
func (p *parker) keep(ctx context.Context, b *batch, first Parked) {
	kept, err := p.each(ctx, b.items[b.end:], first)
	if len(kept) > 0 {
		if unknown := p.deps.Halts.settle(ctx, b.aggregate); unknown != nil {
			kept, err = nil, unknown
		}
	}
	b.verdicts, b.err = append(b.verdicts, kept...), err
}

// each keeps items aside, as far as it gets. A redrive may deal with them, and with more,
// before this hold applies something again.
func (p *parker) each(ctx context.Context, items []item, as Parked) (kept []session.Verdict, err error) {
	p.versions.forget()
	for i := 0; i < len(items) && items[i].fills == ""; i++ {
		var verdict session.Verdict
		if it := &items[i]; it.event == nil {
			verdict = p.verdicts.refused(it)
		} else if verdict, err = p.one(ctx, it, as); err != nil {
			break
		}
		kept, as = append(kept, verdict), Parked{Reason: reasonBehind}
	}
	return kept, err
}

// one keeps one message aside, or says that it goes to the dead letters because it
// cannot be kept.
func (p *parker) one(ctx context.Context, it *item, as Parked) (v session.Verdict, err error) {
	if ctx.Err() != nil {
		return v, context.Cause(ctx)
	}
	as.Message, as.Event = *it.message, *it.event
	err = &RejectedError{Reason: "its body is an AMQP value or sequence, not data"}
	if it.message.OtherBody == "" {
		err = p.deps.Parking.Park(ctx, []Parked{as})
	}
	rejected, refused := asRejected(err)
	switch {
	case refused:
		v, err = p.withoutBody(ctx, it, as, rejected.Reason)
	case errors.Is(err, ErrDiscarded):
		err = nil
		p.verdicts.discarded(it)
	case err == nil:
		p.verdicts.counts.Parked.Add(1)
		it.traced(FateParked, as.Reason)
	default:
		err = fmt.Errorf("park a message of aggregate %q: %w", as.Event.AggregateID, err)
	}
	return v, err
}

// withoutBody sends a message that cannot be kept to the dead letters, and
// parks what it says of itself in its place: a redrive stops there, and does not
// apply what follows as if the message had never been.
func (p *parker) withoutBody(ctx context.Context, it *item, as Parked, problem string) (session.Verdict, error) {
	it.refusal = session.Verdict{DeadLetter: true, Reason: reasonTooBig, Description: as.Reason + "; cannot be parked: " + problem}
	as.Message.Body, as.Message.Properties = nil, nil
	as.Reason += "; cannot be kept here, its body is in the dead letters: " + problem
	err := p.deps.Parking.Park(ctx, []Parked{as})
	if _, stillTooBig := asRejected(err); err != nil && !stillTooBig {
		return session.Verdict{}, fmt.Errorf("park a message of aggregate %q: %w", as.Event.AggregateID, err)
	}
	return p.verdicts.refused(it), nil
}
