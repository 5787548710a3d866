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

// pass stores the writes of one call to one collection.
type pass struct {
	store      *Writes
	collection *mongo.Collection
	writes     []projection.Write
	outcomes   []delivery.Outcome
	pending    []int // places in writes that are not stored yet, in order
	// fold is alone once a fold of several writes was refused.
	fold reach
}

// run sends bulk writes until nothing is pending. Each one settles at least one
// write, takes folds apart, or ends it.
func (p *pass) run(ctx context.Context) error {
	for len(p.pending) > 0 {
		sent := units(p.writes, p.pending, p.fold)
		models := make([]mongo.WriteModel, len(sent))
		now := time.Now()
		for i, u := range sent {
			models[i] = u.model(p.writes, now, p.store.sources)
		}
		result, err := p.collection.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(true))
		p.store.witnessed.inserted(p.collection.Name(), now, result)
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

// settle gives the writes of units their outcome.
func (p *pass) settle(done []*unit, outcome delivery.Outcome) {
	for _, u := range done {
		for _, w := range u.writes {
			p.outcomes[w] = outcome
		}
	}
	p.pending = slices.DeleteFunc(slices.Clone(p.pending), func(w int) bool { return p.outcomes[w] != delivery.Unknown })
}

// learn takes from a failed bulk write what it has stored, and decides about
// the unit that it failed at. It returns nil when there is more to send.
func (p *pass) learn(ctx context.Context, sent []*unit, err error) error {
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
		p.fold = alone
		return nil
	}
	return reject(failed.writes[0], reply.Reason(failure.Code, failure.Raw))
}

// confirm looks up whether a write, which the unique _id refused, was applied
// before, and with it those behind it on the same document.
func (p *pass) confirm(ctx context.Context, place int) error {
	first := &p.writes[place]
	at, found, err := p.place(ctx, first.ID)
	switch {
	case err != nil:
		return err
	case !found:
		return reject(place, "the read document is not of the projector: it has no _relay.sequence")
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
	case twins(first.Event, at):
		return reject(place, twinned(first.Event, at.EventID))
	}
	var repeats []int
	for _, w := range p.pending {
		write := &p.writes[w]
		if reflect.DeepEqual(write.ID, first.ID) && write.Event.Sequence <= at.Sequence && p.store.sources.fits(write.Event, at) && !twins(write.Event, at) {
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
func (p *pass) place(ctx context.Context, id any) (at place, found bool, err error) {
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

// twins tells whether another event with the same sequence is stored: then the
// source gave two events one version, and taking this one for a repeat would
// lose it in silence. Of two sources of which one goes on from the other it is the
// same event, whose id is another one under another name.
func twins(e *contract.Event, at place) bool {
	return e.Sequence == at.Sequence && e.ID != at.EventID && !another(e, at)
}

func twinned(e *contract.Event, storedID string) string {
	return fmt.Sprintf("two events of the aggregate have the sequence %s: this one, and %s, which is applied", e.Sequence, storedID)
}

// blame finds the write that a failed command is about. Where the command was
// refused for what it says, its writes are sent one by one.
func (p *pass) blame(ctx context.Context, sent []*unit, err error) error {
	if !reply.IsAboutData(err) {
		return fmt.Errorf("write to %q: %w", p.collection.Name(), reply.WithoutData(err))
	}
	if len(sent) < len(p.pending) {
		p.fold = alone
		return nil
	}
	if len(p.pending) == 1 {
		return reject(p.pending[0], reply.WithoutData(err).Error())
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

func reject(place int, reason string) error {
	return &delivery.RejectedError{Index: place, Reason: reason}
}
