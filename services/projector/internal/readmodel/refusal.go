package readmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/reply"
)

// refusedError means that the server refuses to change the documents: for one
// coalesced write where the server names it. In a transaction it refuses whole commands.
type refusedError struct {
	failed  *coalescedWrite // nil where unknown
	failure mongo.WriteError
}

func (e *refusedError) Error() string { return e.reason() }

// reason is the driver's own text where it could not encode what it was given.
func (e *refusedError) reason() string {
	if e.failure.Code == 0 {
		return e.failure.Message
	}
	return reply.Reason(e.failure.Code, e.failure.Raw)
}

// refused is what an error says about writes that were sent, if it is about them.
func refused(err error, sent []*coalescedWrite) (*refusedError, bool) {
	bulk, ok := errors.AsType[mongo.BulkWriteException](err)
	if ok && len(bulk.WriteErrors) > 0 && bulk.WriteErrors[0].Index < len(sent) {
		failure := bulk.WriteErrors[0]
		return &refusedError{sent[failure.Index], failure.WriteError}, failure.Code == reply.DuplicateKey || reply.IsData(failure.Code)
	}
	var only *coalescedWrite // a command with one is about that
	if len(sent) == 1 {
		only = sent[0]
	}
	if e, ok := errors.AsType[mongo.CommandError](err); ok {
		failure := mongo.WriteError{Code: int(e.Code), Message: e.Message, Raw: e.Raw}
		return &refusedError{only, failure}, failure.Code == reply.DuplicateKey || reply.IsData(failure.Code)
	}
	return &refusedError{only, mongo.WriteError{Message: fmt.Sprint(err)}}, reply.IsAboutData(err)
}

// seenError means that the ledger is not below the first event at a position.
type seenError struct{ key positionKey }

func (e *seenError) Error() string { return "the ledger is not below the event" }

// judge decides about what was refused. Nothing of its transaction is stored.
func (p *transaction) judge(ctx context.Context, sent []int, refusal *refusedError) error {
	taken := refusal.failure.Code == reply.DuplicateKey && !reply.OfAnotherIndex(refusal.failure)
	switch {
	case refusal.failed != nil && taken && p.writes[refusal.failed.writes[0]].Keyed:
		sent = refusal.failed.writes
	case refusal.failed != nil && (taken || len(refusal.failed.writes) == 1):
		sent = refusal.failed.writes[:1]
	case refusal.failed != nil && p.scope != alone, refusal.failed == nil && !p.single:
		p.scope, p.single = alone, refusal.failed == nil
		return nil
	}
	if !taken {
		return refuse(sent[0], projection.Store, refusal.reason())
	}
	before := len(p.pending)
	for _, place := range sent {
		if err := p.taken(ctx, place); err != nil {
			return err
		}
	}
	if len(p.pending) < before {
		return nil
	}
	return fmt.Errorf("write %s: another write got in between", p.about())
}

// taken deals with a write whose document, or another one of its event, is there:
// it may be of somebody else, or at the event already.
func (p *transaction) taken(ctx context.Context, place int) error {
	w := &p.writes[place]
	if w.Keyed {
		return p.foreign(ctx, place)
	}
	at, err := p.store.Position(ctx, w)
	if err == nil && at.Sequence == "" {
		err = p.foreign(ctx, place)
	}
	if err != nil || at.Sequence < w.Event.Sequence && at.Other == "" {
		return err
	}
	one := &bulkWriter{
		store: p.store, collection: p.store.db.Collection(w.Collection), writes: p.writes, outcomes: p.outcomes,
		pending: inCollection(p.writes, p.pending, w.Collection),
	}
	if err := one.confirm(ctx, place); err != nil {
		return err
	}
	p.settle()
	return nil
}

// settle takes those writes out of the pending ones that have an outcome.
func (p *transaction) settle() {
	p.pending = slices.DeleteFunc(slices.Clone(p.pending), func(w int) bool { return p.outcomes[w] != delivery.Unknown })
}

// foreign rejects a write whose document is not of the projector, or shows an event of
// the aggregate that the ledger has lost.
func (p *transaction) foreign(ctx context.Context, place int) error {
	w := &p.writes[place]
	document, err := p.store.db.Collection(w.Collection).FindOne(ctx, bson.D{{Key: "_id", Value: w.ID}}).Raw()
	shows := func(field string) string {
		text, _ := document.Lookup(bookkeeping, field).StringValueOK()
		return text
	}
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return nil
	case err != nil:
		return fmt.Errorf("read a document of %q: %w", w.Collection, err)
	case document.Lookup(bookkeeping, "sequence").Type == 0:
		return refuse(place, projection.Store, notOurs)
	}
	d := shownEvent{document.Lookup("_id"), shows("aggregateId"), contract.Sequence(shows("sequence"))}
	if !w.Keyed || d.AggregateID != w.Event.AggregateID || d.Sequence < w.Event.Sequence {
		return nil
	}
	if noted, err := p.store.noted(ctx, w.Projection, d); err != nil || noted {
		return err
	}
	return reject(place, lost(w.Projection, w.Collection, d).Error())
}

// confirm looks up how far a position of the ledger is, and takes its writes up
// to there for repeats.
func (p *transaction) confirm(ctx context.Context, a positionKey) error {
	mine := ofPosition(p.writes, p.pending, a)
	first := &p.writes[mine[0]]
	document, err := p.store.db.Collection(projection.Positions).FindOne(ctx, bson.D{{Key: "_id", Value: a}}).Raw()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return p.between(a)
	}
	if err != nil {
		return fmt.Errorf("read the position of aggregate %q in projection %q: %w", a.AggregateID, a.Projection, err)
	}
	at, _ := placeOf(document)
	why, learned, err := p.store.sources.apart(ctx, first.Event, at)
	switch {
	case err != nil:
		return err
	case why != "" && !first.Passed:
		return reject(mine[0], why)
	case why != "": // no document changes, and how far the other source is stays as it is
		p.passOther(mine, at)
		return nil
	case at.Sequence < first.Event.Sequence && learned:
		return nil
	case at.Sequence < first.Event.Sequence:
		return p.between(a)
	case conflicts(first.Event, at) && !first.Passed:
		return reject(mine[0], conflictReason(first.Event, at.EventID))
	}
	n := 0
	for n < len(mine) {
		w := &p.writes[mine[n]]
		if w.Event.Sequence > at.Sequence || !p.store.sources.fits(w.Event, at) || conflicts(w.Event, at) && !w.Passed {
			break
		}
		n++
	}
	repeats, err := p.store.repeats(ctx, p.writes, mine[:n], at.First)
	if err != nil {
		return err
	}
	for _, place := range repeats {
		p.outcomes[place] = delivery.Repeated
	}
	p.settle()
	return nil
}

// passOther takes the first writes at a position, which are of another source than it
// is at and change no document, for dealt with.
func (p *transaction) passOther(mine []int, at place) {
	for _, place := range mine {
		if w := &p.writes[place]; !w.Passed || p.store.sources.fits(w.Event, at) {
			break
		}
		p.outcomes[place] = delivery.Repeated
	}
	p.settle()
}

// between is the error of a position that was not below an event, and is now.
func (p *transaction) between(a positionKey) error {
	return fmt.Errorf("write projection %q: another write got in between, or a majority does not have it yet", a.Projection)
}
