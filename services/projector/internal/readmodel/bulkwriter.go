package readmodel

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/reply"
)

// bulkWriter stores the writes of one call to one collection.
type bulkWriter struct {
	store      *Writes
	collection *mongo.Collection
	writes     []projection.Write
	outcomes   []delivery.Outcome
	pending    []int // places in writes that are not stored yet, in order
	// scope is alone once a coalesced write was refused.
	scope scope
}

// run sends bulk writes until nothing is pending. Each one settles at least one
// write, takes coalesced writes apart, or ends it.
func (p *bulkWriter) run(ctx context.Context) error {
	for len(p.pending) > 0 {
		sent := coalesce(p.writes, p.pending, p.scope)
		models := make([]mongo.WriteModel, len(sent))
		now := time.Now()
		for i, u := range sent {
			models[i] = u.model(p.writes, now, p.store.sources)
		}
		err := p.send(ctx, models)
		if err == nil {
			p.settle(sent, delivery.Applied)
			return nil
		}
		if err := p.learn(ctx, sent, err); err != nil {
			return err
		}
	}
	return nil
}

// smallMost is of how many events a write may be that is sent together with others, which
// it holds up by as much as it takes.
const smallMost = 16

// send sends what is pending: where that is one document, together with those of others.
func (p *bulkWriter) send(ctx context.Context, models []mongo.WriteModel) error {
	if len(models) == 1 && len(p.pending) <= smallMost {
		return p.store.commit(p.collection).write(ctx, models[0])
	}
	return p.store.bulk(ctx, p.collection, models, true)
}

// settle gives coalesced writes their outcome.
func (p *bulkWriter) settle(done []*coalescedWrite, outcome delivery.Outcome) {
	for _, u := range done {
		for _, w := range u.writes {
			p.outcomes[w] = outcome
		}
	}
	p.pending = slices.DeleteFunc(slices.Clone(p.pending), func(w int) bool { return p.outcomes[w] != delivery.Unknown })
}

// learn takes from a failed bulk write what it has stored, and decides about
// the coalesced write that it failed at. It returns nil when there is more to send.
func (p *bulkWriter) learn(ctx context.Context, sent []*coalescedWrite, err error) error {
	bulk, ok := errors.AsType[mongo.BulkWriteException](err)
	if !ok || len(bulk.WriteErrors) == 0 || bulk.WriteConcernError != nil {
		return p.blame(ctx, sent, err)
	}
	failure := bulk.WriteErrors[0]
	if failure.Index < 0 || failure.Index >= len(sent) {
		return fmt.Errorf("write to %q: %w", p.collection.Name(), reply.WithoutData(err))
	}
	p.settle(sent[:failure.Index], delivery.Applied)
	failed := sent[failure.Index]
	switch {
	case failure.Code == reply.DuplicateKey && !reply.OfAnotherIndex(failure.WriteError):
		return p.confirm(ctx, failed.writes[0])
	case failure.Code != reply.DuplicateKey && !reply.IsData(failure.Code):
		return fmt.Errorf("write to %q: %w", p.collection.Name(), reply.WithoutData(err))
	case len(failed.writes) > 1:
		p.scope = alone
		return nil
	}
	return refuse(failed.writes[0], projection.Store, reply.Reason(failure.Code, failure.Raw))
}

// confirm looks up whether a write, which the unique _id refused, was applied
// before, and with it those behind it on the same document.
func (p *bulkWriter) confirm(ctx context.Context, place int) error {
	first := &p.writes[place]
	at, found, err := p.place(ctx, first.ID)
	switch {
	case err != nil:
		return err
	case !found:
		return refuse(place, projection.Store, notOurs)
	}
	why, learned, err := p.store.sources.apart(ctx, first.Event, at)
	switch {
	case err != nil:
		return err
	case why != "":
		return reject(place, why)
	case at.Sequence < first.Event.Sequence && learned:
		return nil
	case at.Sequence < first.Event.Sequence:
		return fmt.Errorf("write to %q: another write got in between, or a majority does not have it yet", p.collection.Name())
	case conflicts(first.Event, at):
		return reject(place, conflictReason(first.Event, at.EventID))
	}
	var repeats []int
	for _, w := range p.pending {
		write := &p.writes[w]
		if reflect.DeepEqual(write.ID, first.ID) && write.Event.Sequence <= at.Sequence && p.store.sources.fits(write.Event, at) && !conflicts(write.Event, at) {
			repeats = append(repeats, w)
		}
	}
	repeats, err = p.store.repeats(ctx, p.writes, repeats, at.First)
	if err != nil {
		return err
	}
	for _, w := range repeats {
		p.outcomes[w] = delivery.Repeated
	}
	p.pending = slices.DeleteFunc(slices.Clone(p.pending), func(w int) bool { return slices.Contains(repeats, w) })
	return nil
}

// place is how far a document is that is there; not found where it has no position.
func (p *bulkWriter) place(ctx context.Context, id any) (at place, found bool, err error) {
	document, err := p.collection.FindOne(ctx, bson.D{{Key: "_id", Value: id}}, options.FindOne().SetProjection(bson.D{
		{Key: "_relay.sequence", Value: 1}, {Key: "_relay.eventId", Value: 1}, {Key: "_relay.source", Value: 1}, {Key: "_relay." + begun, Value: 1},
	})).Raw()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return at, false, fmt.Errorf("write to %q: the document is there, but a majority does not have it yet", p.collection.Name())
	}
	if err != nil {
		return at, false, fmt.Errorf("read position in %q: %w", p.collection.Name(), err)
	}
	at, found = placeOf(document, bookkeeping)
	return at, found, nil
}

// placeOf is the place that a document has at a path; not found where it has none.
func placeOf(document bson.Raw, path ...string) (at place, found bool) {
	text := func(field string) (string, bool) {
		return document.Lookup(append(slices.Clone(path), field)...).StringValueOK()
	}
	sequence, found := text("sequence")
	at.Sequence = contract.Sequence(sequence)
	at.EventID, _ = text("eventId")
	at.Source, _ = text("source")
	first, _ := text(begun)
	at.First = contract.Sequence(first)
	return at, found
}

// conflicts tells whether another event with the same sequence is stored: then the
// source gave two events one version, and taking this one for a repeat would
// lose it in silence. Of two sources of which one goes on from the other it is the
// same event, whose id is another one under another name.
func conflicts(e *contract.Event, at place) bool {
	return e.Sequence == at.Sequence && e.ID != at.EventID && !another(e, at)
}

func conflictReason(e *contract.Event, storedID string) string {
	return fmt.Sprintf("two events of the aggregate have the sequence %s: this one, and %s, which is applied", e.Sequence, storedID)
}

// blame finds the write that a failed command is about. Where the command was
// refused for what it says, its writes are sent one by one.
func (p *bulkWriter) blame(ctx context.Context, sent []*coalescedWrite, err error) error {
	if !reply.IsAboutData(err) {
		return fmt.Errorf("write to %q: %w", p.collection.Name(), reply.WithoutData(err))
	}
	if len(sent) < len(p.pending) {
		p.scope = alone
		return nil
	}
	if len(p.pending) == 1 {
		return refuse(p.pending[0], projection.Store, reply.WithoutData(err).Error())
	}
	rest := p.pending
	for i := range rest {
		p.pending = rest[i : i+1]
		if err := p.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// notOurs is why nothing is written over a document of somebody else.
const notOurs = "the read document is not of the projector: it has no _relay.sequence"

// reject refuses a write because the order of its aggregate is in doubt.
func reject(place int, reason string) error { return refuse(place, "", reason) }

// refuse refuses a write for a class of reasons.
func refuse(place int, class projection.Class, reason string) error {
	return &delivery.RejectedError{Index: place, Class: class, Reason: reason}
}
