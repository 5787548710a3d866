package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/session"
	"changerelay/services/projector/internal/shell"
)

// PutBack puts dead-lettered messages back in their place. If they were sent again, they
// would come behind what followed them, and be refused.
//
// It halts the aggregate, so that nothing is applied once every replica knows of the
// halt. Then it looks how far the documents are that the event changes. If none has gone
// past the event, it parks the message in its place and redrives what is parked, in order.
// If one has, the event cannot be applied any more, and the message stays where it is.
//
// A replica may have begun a write before it knew of the halt. So a message that
// was put back is marked (Parked.Returned). A redrive that finds documents past such a
// message stops there, instead of taking it for a repeat.
type PutBack struct {
	Letters        Letters
	Decider        Decider
	Store          Store
	Parking        Parking
	ParkedMessages ParkedMessages
	Gaps           Gaps
	// Group is the group whose projections these are.
	Group string
}

// Letters is where the dead-lettered messages are.
type Letters interface {
	// Message returns the message with the broker's number, whole; false where it is
	// not there any more.
	Message(ctx context.Context, number int64) (m session.Message, found bool, err error)
}

// Letter is what is remembered of a dead-lettered message: where it belongs. The message
// itself may weigh as much as the broker accepts, so only one is in memory at a time.
type Letter struct {
	ID             string
	SequenceNumber int64 // the broker's
	// Event is the message's place, without data; zero for a message of no aggregate.
	Event contract.Event
	// Reason is what it was dead-lettered for.
	Reason string
}

// LetterOf is what is kept of a message that was dead-lettered for reason.
func LetterOf(m *session.Message, reason string) Letter {
	event, _ := contract.Place(m.Message)
	return Letter{ID: m.ID, SequenceNumber: m.SequenceNumber, Event: event, Reason: reason}
}

// discard is the command that removes it.
func (l *Letter) discard() string { return fmt.Sprintf("projector dlq discard %d", l.SequenceNumber) }

// discarded is what becomes of one whose event was discarded.
func (l *Letter) discarded() Return {
	return Return{l, ReturnDiscarded, fmt.Sprintf("event %q was discarded with projector parked discard. %s removes the dead letter", l.Event.ID, l.discard())}
}

// settled is what becomes of one whose event nothing lacks.
func (l *Letter) settled() Return {
	return Return{l, ReturnSettled, fmt.Sprintf("later events of the aggregate are applied, and no record says that a projection lacks event %q: "+
		"it was applied after all, or its documents were rebuilt, or somebody has accepted that they lack it. %s removes the dead letter", l.Event.ID, l.discard())}
}

// nobodys is what becomes of one that nothing of a group takes.
func (l *Letter) nobodys() Return {
	return Return{l, ReturnNobodys, fmt.Sprintf("it was resent for %q, which is neither this group nor a version that is filled: nothing here takes it, or waits for it. "+
		"%s removes the dead letter", l.Event.Resend.Group, l.discard())}
}

// ReturnFate is what becomes of a dead-lettered message.
type ReturnFate string

// The fates of dead-lettered messages.
const (
	// ReturnParked: nothing later is applied, so it is put back in its place.
	ReturnParked ReturnFate = "put back"
	// ReturnApplied: every document that it changes has it already.
	ReturnApplied ReturnFate = "applied already"
	// ReturnRefused: it stays where it is.
	ReturnRefused ReturnFate = "refused"
	// ReturnDiscarded: an operator has discarded its event. It stays where it is, and
	// holds up none of its aggregate.
	ReturnDiscarded ReturnFate = "discarded"
	// ReturnSettled: it was dead-lettered because projections could not apply its event, and
	// none lacks the event any more; or it is a state of a document, and a later one is there. It
	// stays where it is, and holds up none of its aggregate.
	ReturnSettled ReturnFate = "settled"
	// ReturnNobodys: it was resent for another group, or for a version that a rebuild has ended.
	// It stays where it is, and holds up none of its aggregate.
	ReturnNobodys ReturnFate = "not for this group"
	// ReturnGone: somebody else has dealt with it meanwhile.
	ReturnGone ReturnFate = "gone"
)

// Return is what became of one dead-lettered message.
type Return struct {
	Letter *Letter
	Fate   ReturnFate
	Reason string // why it stays
}

// Judge tells what is to become of a dead-lettered message m, as far as the
// documents are now.
func (p *PutBack) Judge(ctx context.Context, l *Letter, m contract.Message) (Return, error) {
	refused := func(format string, args ...any) (Return, error) {
		return Return{l, ReturnRefused, fmt.Sprintf(format, args...)}, nil
	}
	if l.Event.AggregateID == "" {
		return refused("it is of no aggregate: it was not sent by a publisher. %s removes it", l.discard())
	}
	if !Meant(l.Event.Resend, p.Group, p.Gaps.Filling) {
		return l.nobodys(), nil
	}
	discarded, err := p.Parking.Discarded(ctx, &l.Event)
	if err != nil {
		return Return{}, err
	}
	if discarded {
		return l.discarded(), nil
	}
	change, err := decode(m)
	if err != nil {
		return refused("it cannot be read, so nobody can say which documents it changes: %s. Upgrade, then try again", oneLine(err))
	}
	change.Fills = Fills(l.Event.Resend, p.Gaps.Filling)
	writes, failed, err := decide(ctx, p.Decider, change)
	if err != nil {
		return Return{}, err
	}
	if failed != nil {
		return refused("%s. Mend the projection, then try again", failed)
	}
	if len(writes) == 0 && p.Gaps.Versions == nil {
		return refused("no projection makes anything of %q, so nothing is missing. %s removes it", change.Type, l.discard())
	}
	if change.Fills != "" {
		return p.judgeFilling(ctx, l, change, writes)
	}
	var lackedBy []string
	if l.Reason == ReasonNotApplied {
		if lackedBy, err = p.ParkedMessages.SkippedBy(ctx, &l.Event); err != nil {
			return Return{}, err
		}
	}
	stored, beyond, other, err := compare(ctx, p.ParkedMessages, writes, lackedBy, p.Gaps.Filling)
	if err != nil {
		return Return{}, err
	}
	if other != "" {
		return refused("%s", other)
	}
	if beyond != "" && l.Reason == ReasonNotApplied && len(lackedBy) == 0 {
		return l.settled(), nil
	}
	if beyond != "" && l.Reason == ReasonNotApplied { // which speaks against no rebuild
		return refused("%s: %s; then remove the dead letter with %s", beyond, Rebuild, l.discard())
	}
	if beyond != "" {
		return refused("%s. First remove the dead letter with %s, which prints it; then %s", beyond, l.discard(), Rebuild)
	}
	if stored == len(writes) && stored > 0 {
		return Return{l, ReturnApplied, ""}, nil
	}
	return Return{l, ReturnParked, ""}, nil
}

// judgeFilling is Judge of a message that was resent for a version which is filled. That one
// alone lacks it, and has it sent again: parked, it would have the place of the live event,
// and count as that.
func (p *PutBack) judgeFilling(ctx context.Context, l *Letter, change *projection.Change, writes []projection.Write) (Return, error) {
	writes, err := begin(p.Gaps.Filling).Of(ctx, &change.Event, writes)
	if err != nil {
		return Return{}, err
	}
	stored, beyond, other, err := compare(ctx, p.ParkedMessages, writes, nil, nil)
	switch {
	case err != nil:
		return Return{}, err
	case other != "":
		return Return{l, ReturnRefused, other}, nil
	case beyond != "" && !change.Version.Known: // of a state, whose sequence is its place in the stream
		return Return{l, ReturnSettled, fmt.Sprintf("it was resent for %q, which is filled and has a later state of the document: nothing is missing. %s removes the dead letter", change.Fills, l.discard())}, nil
	case beyond != "":
		return Return{l, ReturnRefused, fmt.Sprintf("it was resent for %q, which is filled and has gone past it, without it unless it was sent again since. No later resend brings it there: "+
			"remove the dead letter with %s; then, unless it was sent again since, end the rebuild with projector rebuild --projection NAME --cancel, and begin again, "+
			"or, where readers see the new version already, begin again once it has come to its end. Do so whatever projector rebuild says: it does not see what the version lacks that was there before, if that lacks it as well", change.Fills, l.discard())}, nil
	case stored == len(writes) && stored > 0:
		return Return{l, ReturnApplied, ""}, nil
	}
	return Return{l, ReturnRefused, fmt.Sprintf("it was resent for %q, which is filled and has not come to it. While publisher resend status says that a resend is under way, wait for its end, and try again. "+
		"Then remove the dead letter with %s, and have it sent again with publisher resend --aggregate %s --group %s --why TEXT",
		change.Fills, l.discard(), shell.Word(l.Event.AggregateID), shell.Word(l.Event.Resend.Group))}, nil
}

// Rebuild is the way back to a read model that has every event, once nothing speaks against that.
const Rebuild = "build the read model anew from the source: projector rebuild --projection NAME for a projection with a version " +
	"(end one that is under way first, with --cancel), projector rebuild --aggregate ID for single documents; where these are refused, as another version (or another group and database) " +
	"with a topic and a subscription of its own, which a publisher of its own with START_AT=snapshot fills: docs/operations.md, \"Building a read model anew\""

// compare tells how many of an event's writes are stored, and why the event cannot
// be applied any more, if it cannot. A projection that passes the event by
// misses nothing of it, however far it has come: that is noted, too. Other says that
// something is of another source than the event, and is not to be compared with it. A
// position at the event, or one of a source that continues the event's, has the event,
// unless the projection is one of lackedBy: a position also goes over what is skipped. A
// version that is filled, where f names those, has the event from the resend: it is past no
// event that others lack.
func compare(ctx context.Context, parked ParkedMessages, writes []projection.Write, lackedBy []string, f Filling) (stored int, beyond, other string, err error) {
	var have []string
	for i := range writes {
		w := &writes[i]
		at, err := parked.Position(ctx, w)
		if err != nil {
			return 0, "", "", err
		}
		lacked := slices.Contains(lackedBy, w.Projection)
		itself := at.Sequence == w.Event.Sequence && at.EventID == w.Event.ID
		switch {
		case at.Other != "" && w.Changes():
			return 0, "", at.Other, nil
		case !lacked && (itself || at.Continued && at.Sequence >= w.Event.Sequence):
			stored++
			have = append(have, w.Projection)
		case at.Sequence < w.Event.Sequence && at.Other == "":
		case !w.Changes(), f != nil && f.Has(w.Projection):
			stored++
		case beyond == "" && itself:
			beyond = fmt.Sprintf("aggregate %q has event %q at sequence %s, and projection %q has gone over it without applying it. ",
				w.Event.AggregateID, w.Event.ID, w.Event.Sequence, w.Projection)
		case beyond == "":
			beyond = fmt.Sprintf("aggregate %q has event %q at sequence %s, and projection %q is at sequence %s already, with event %q. ",
				w.Event.AggregateID, w.Event.ID, w.Event.Sequence, w.Projection, at.Sequence, at.EventID)
		}
	}
	if beyond == "" {
		return stored, "", "", nil
	}
	if len(have) > 0 {
		beyond += fmt.Sprintf("Projections %q have applied it. ", have)
	}
	return 0, beyond + "It cannot be applied in order any more", "", nil
}

// Order keeps the dead letters of one aggregate in order: none is put back behind one that
// stays where it is, because the earlier one could then never be applied. The zero Order
// is for the first.
type Order struct{ stays *Letter }

// Next is what becomes of the next one by its sequence, given what would become
// of it alone.
func (o *Order) Next(alone Return) Return {
	switch {
	case alone.Fate == ReturnRefused && o.stays == nil:
		o.stays = alone.Letter
	case alone.Fate == ReturnParked && o.stays != nil:
		return Return{alone.Letter, ReturnRefused, fmt.Sprintf("event %q of its aggregate, dead letter %d, comes before it and is refused; "+
			"that one could not be applied any more after this one: put it back, or discard it, first", o.stays.ID, o.stays.SequenceNumber)}
	}
	return alone
}

// Run puts messages back, those of one aggregate together and in the order of
// their sequences, none behind one that is refused. remove takes dead letters
// away: those that are parked or applied by then. It returns what became of each
// message and each aggregate. One that fails holds up no other, and may be left
// halted, which another run lifts; the error says of all of them why.
func (p *PutBack) Run(ctx context.Context, aggregates [][]Letter, remove func(context.Context, []*Letter) error) (returns []Return, redriven []Redriven, err error) {
	var errs []error
	were, failed := make([]bool, len(aggregates)), make([]bool, len(aggregates))
	for i, letters := range aggregates {
		if were[i], err = p.halt(ctx, &letters[0]); err != nil {
			failed[i], errs = true, append(errs, fmt.Errorf("halt aggregate %q: %w", letters[0].Event.AggregateID, err))
		}
	}
	if err := awaitLists(ctx); err != nil {
		return nil, nil, errors.Join(append(errs, err)...)
	}
	var done []*Letter
	var lift []string
	for i, letters := range aggregates {
		if failed[i] {
			continue
		}
		some, err := p.parkAll(ctx, letters)
		returns = append(returns, some...)
		parked := false
		for _, r := range some {
			parked = parked || r.Fate == ReturnParked
			if r.Fate == ReturnParked || r.Fate == ReturnApplied {
				done = append(done, r.Letter)
			}
		}
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("put dead letters of aggregate %q back: %w", letters[0].Event.AggregateID, err))
		case parked || !were[i]:
			lift = append(lift, letters[0].Event.AggregateID)
		}
	}
	// Stored first, then taken away: whatever ends in between is found parked or
	// applied. Applied before it is taken away it might be found overtaken by the next
	// of its aggregate, and be refused.
	if err := remove(ctx, done); err != nil {
		return returns, nil, errors.Join(append(errs, err)...)
	}
	gaps := p.Gaps
	gaps.Returning = true
	err = RedriveAll(ctx, p.Decider, p.Store, p.ParkedMessages, gaps, lift, func(r Redriven) error {
		redriven = append(redriven, r)
		return nil
	})
	return returns, redriven, errors.Join(append(errs, err)...)
}

// parkAll parks the messages of one aggregate in their order, as far as it gets.
func (p *PutBack) parkAll(ctx context.Context, letters []Letter) (returns []Return, err error) {
	order := &Order{}
	for i := range letters {
		r, err := p.park(ctx, &letters[i], order)
		if err != nil {
			return returns, err
		}
		returns = append(returns, r)
	}
	return returns, nil
}

// ReturnHalt is how the reason of a halt begins that is for putting messages back.
const ReturnHalt = "a dead-lettered message is being put back"

// ForReturn tells whether a halt was made to put messages back. If nobody does so now,
// the process that did has ended before it lifted the halt, and another run finishes it.
func ForReturn(reason string) bool { return strings.HasPrefix(reason, ReturnHalt) }

// halt halts a message's aggregate, and tells whether it was halted before, for
// another reason than this.
func (p *PutBack) halt(ctx context.Context, l *Letter) (was bool, err error) {
	event := l.Event
	if event.AggregateID == "" {
		return false, fmt.Errorf("put message %q back: it is of no aggregate", l.ID)
	}
	before, err := p.ParkedMessages.Mark(ctx, event.AggregateID)
	if err != nil {
		return false, err
	}
	_, err = p.Parking.Halt(ctx, Halt{Event: event, Reason: ReturnHalt + " (" + l.Reason + ")", Uncounted: true})
	return before != nil && !ForReturn(before.Reason), err
}

// park parks a message where that is to become of it.
func (p *PutBack) park(ctx context.Context, l *Letter, order *Order) (Return, error) {
	m, found, err := p.Letters.Message(ctx, l.SequenceNumber)
	if err != nil {
		return Return{}, err
	}
	if !found {
		return Return{l, ReturnGone, ""}, nil
	}
	r, err := p.Judge(ctx, l, m.Message)
	if err != nil {
		return r, err
	}
	if r = order.Next(r); r.Fate != ReturnParked {
		if r.Fate == ReturnApplied {
			has := p.Decider.Followers(l.Event.Type)
			if fills := Fills(l.Event.Resend, p.Gaps.Filling); fills != "" {
				has = []string{fills}
			}
			return r, p.ParkedMessages.Reapplied(ctx, &l.Event, has)
		}
		return r, nil
	}
	err = p.Parking.Park(ctx, []Parked{{Message: m, Event: l.Event, Reason: "it was dead-lettered (" + l.Reason + ") and is put back", Returned: true}})
	if rejected, ok := asRejected(err); ok {
		return order.Next(Return{l, ReturnRefused, "it cannot be parked: " + rejected.Reason}), nil
	}
	if errors.Is(err, ErrLifted) {
		return order.Next(Return{l, ReturnRefused, "somebody has lifted the halt meanwhile, try again"}), nil
	}
	return r, err
}
