package readmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// account is a key of the ledger: how far an aggregate's events are in the
// documents of a projection whose documents many aggregates change. The guard
// stands there, and moves in one transaction with the documents.
type account struct {
	Projection  string `bson:"projection"`
	AggregateID string `bson:"aggregateId"`
}

// entry is a document of the ledger.
type entry struct {
	Sequence contract.Sequence `bson:"sequence"`
	EventID  string            `bson:"eventId"`
}

// joint stores writes that belong together: those to documents of another key,
// whose guard stands in the ledger, and those of events that write to several
// collections. Each run of events goes in one transaction, so that an event which
// one collection refuses is stored in none, and nothing after it either.
type joint struct {
	store    *Store
	writes   []projection.Write
	outcomes []delivery.Outcome
	pending  []int // places in writes that are not stored yet, in order
	// fold is alone once a fold of several writes was refused.
	fold reach
	// single: events go one by one, since a command was refused as a whole.
	single bool
}

func accountOf(w *projection.Write) account { return account{w.Projection, w.Event.AggregateID} }

// refusedError means that the server refuses to change the documents: for one
// unit where the server names it. In a transaction it refuses whole commands.
type refusedError struct {
	unit    *unit // nil where unknown
	failure mongo.WriteError
}

func (e *refusedError) Error() string { return e.reason() }

// reason is the driver's own text where it could not encode what it was given.
func (e *refusedError) reason() string {
	if e.failure.Code == 0 {
		return e.failure.Message
	}
	return reasonOf(e.failure.Code, e.failure.Raw)
}

// refused is what an error says about units that were sent, if it is about them.
func refused(err error, sent []*unit) (*refusedError, bool) {
	bulk, ok := errors.AsType[mongo.BulkWriteException](err)
	if ok && len(bulk.WriteErrors) > 0 && bulk.WriteErrors[0].Index < len(sent) {
		failure := bulk.WriteErrors[0]
		return &refusedError{sent[failure.Index], failure.WriteError}, failure.Code == duplicateKey || classify(failure.Code) == data
	}
	if e, ok := errors.AsType[mongo.CommandError](err); ok {
		failure := mongo.WriteError{Code: int(e.Code), Message: e.Message, Raw: e.Raw}
		return &refusedError{nil, failure}, failure.Code == duplicateKey || classify(failure.Code) == data
	}
	return &refusedError{nil, mongo.WriteError{Message: fmt.Sprint(err)}}, isAboutData(err)
}

// seenError means that the ledger is not below the first event of an account.
type seenError struct{ account account }

func (e *seenError) Error() string { return "the ledger is not below the event" }

// run stores rising runs of the pending writes, each in a transaction. A round
// settles at least one write, takes folds apart, or ends it.
func (p *joint) run(ctx context.Context) error {
	for len(p.pending) > 0 {
		rising := p.rising()
		err := p.send(ctx, rising)
		refusal, isRefused := errors.AsType[*refusedError](err)
		seen, isSeen := errors.AsType[*seenError](err)
		switch {
		case err == nil:
			for _, place := range rising {
				p.outcomes[place] = delivery.Applied
			}
			p.pending = p.pending[len(rising):]
		case isSeen:
			err = p.confirm(ctx, seen.account)
		case isRefused:
			err = p.judge(ctx, rising, refusal)
		default:
			err = fmt.Errorf("write %s: %w", p.about(), withoutData(err))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// about names the projections whose writes are pending, for an error.
func (p *joint) about() string {
	var names []string
	for _, place := range p.pending {
		if name := p.writes[place].Projection; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return fmt.Sprintf("projections %q", names)
}

// send stores a run: in a transaction, unless one entry of the ledger is all that
// changes.
func (p *joint) send(ctx context.Context, places []int) error {
	if len(collections(p.writes, places)) == 0 && len(accounts(p.writes, places)) == 1 {
		return p.write(ctx, places)
	}
	return p.store.together(ctx, func(ctx context.Context) error { return p.write(ctx, places) })
}

// rising returns the first pending writes whose sequences rise; writes of the
// same message belong together. What comes after is a repeat or a twin.
func (p *joint) rising() []int {
	for i := 1; i < len(p.pending); i++ {
		last, next := p.writes[p.pending[i-1]].Event, p.writes[p.pending[i]].Event
		if next != last && (p.single || next.Sequence <= last.Sequence) {
			return p.pending[:i]
		}
	}
	return p.pending
}

// write is one transaction: each account of the ledger moves from below its
// first event to its last, and the documents change.
func (p *joint) write(ctx context.Context, places []int) error {
	now := time.Now()
	for _, a := range accounts(p.writes, places) {
		if err := p.move(ctx, a, places, now); err != nil {
			return err
		}
	}
	for _, collection := range collections(p.writes, places) {
		sent := units(p.writes, inCollection(p.writes, places, collection), p.fold)
		models := make([]mongo.WriteModel, len(sent))
		for i, u := range sent {
			models[i] = u.model(p.writes, now)
			if u.first(p.writes).Keyed {
				models[i] = u.keyedModel(p.writes, now)
			}
		}
		_, err := p.store.db.Collection(collection).BulkWrite(ctx, models, options.BulkWrite().SetOrdered(true))
		if refusal, is := refused(err, sent); err != nil && is {
			return refusal
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// move moves an account over its events.
func (p *joint) move(ctx context.Context, a account, places []int, now time.Time) error {
	mine := ofAccount(p.writes, places, a)
	first, last := p.writes[mine[0]].Event, p.writes[mine[len(mine)-1]].Event
	_, err := p.store.db.Collection(projection.Positions).UpdateOne(ctx,
		bson.D{{Key: "_id", Value: a}, {Key: "sequence", Value: bson.D{{Key: "$lt", Value: first.Sequence}}}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "sequence", Value: last.Sequence}, {Key: "eventId", Value: last.ID}, {Key: "eventType", Value: last.Type}, {Key: "operation", Value: last.Operation}, {Key: "updatedAt", Value: now}}}},
		options.UpdateOne().SetUpsert(true))
	if mongo.IsDuplicateKeyError(err) {
		return &seenError{a}
	}
	return err
}

// judge decides about what was refused. Nothing of its transaction is stored.
func (p *joint) judge(ctx context.Context, sent []int, refusal *refusedError) error {
	taken := refusal.failure.Code == duplicateKey && !ofAnotherIndex(refusal.failure)
	switch {
	case refusal.unit != nil && (taken || len(refusal.unit.writes) == 1):
		sent = refusal.unit.writes[:1]
	case refusal.unit != nil && p.fold != alone, refusal.unit == nil && !p.single:
		p.fold, p.single = alone, refusal.unit == nil
		return nil
	}
	if !taken {
		return reject(sent[0], refusal.reason())
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
func (p *joint) taken(ctx context.Context, place int) error {
	w := &p.writes[place]
	if w.Keyed {
		return p.foreign(ctx, place)
	}
	sequence, _, err := p.store.Position(ctx, w)
	if err == nil && sequence == "" {
		err = p.foreign(ctx, place)
	}
	if err != nil || sequence < w.Event.Sequence {
		return err
	}
	one := &pass{
		collection: p.store.db.Collection(w.Collection), writes: p.writes, outcomes: p.outcomes,
		pending: inCollection(p.writes, p.pending, w.Collection),
	}
	if err := one.confirm(ctx, place); err != nil {
		return err
	}
	p.settle()
	return nil
}

// settle takes those writes out of the pending ones that have an outcome.
func (p *joint) settle() {
	p.pending = slices.DeleteFunc(slices.Clone(p.pending), func(w int) bool { return p.outcomes[w] != delivery.Unknown })
}

// foreign rejects a write whose document is not of the projector.
func (p *joint) foreign(ctx context.Context, place int) error {
	w := &p.writes[place]
	document, err := p.store.db.Collection(w.Collection).FindOne(ctx, bson.D{{Key: "_id", Value: w.ID}}).Raw()
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return nil
	case err != nil:
		return fmt.Errorf("read a document of %q: %w", w.Collection, err)
	case document.Lookup(bookkeeping, "sequence").Type == 0:
		return reject(place, "the read document is not of the projector: it has no _relay.sequence")
	}
	return nil
}

// confirm looks up how far an account of the ledger is, and takes its writes up
// to there for repeats.
func (p *joint) confirm(ctx context.Context, a account) error {
	var stored entry
	err := p.store.db.Collection(projection.Positions).FindOne(ctx, bson.D{{Key: "_id", Value: a}}).Decode(&stored)
	mine := ofAccount(p.writes, p.pending, a)
	first := &p.writes[mine[0]]
	switch {
	case err != nil && !errors.Is(err, mongo.ErrNoDocuments):
		return fmt.Errorf("read the position of aggregate %q in projection %q: %w", a.AggregateID, a.Projection, err)
	case err != nil, stored.Sequence < first.Event.Sequence:
		return fmt.Errorf("write projection %q: another write got in between, or a majority does not have it yet", a.Projection)
	case twins(first.Event, stored.Sequence, stored.EventID) && !first.Passed:
		return reject(mine[0], twinned(first.Event, stored.EventID))
	}
	for _, place := range mine {
		w := &p.writes[place]
		if w.Event.Sequence > stored.Sequence || twins(w.Event, stored.Sequence, stored.EventID) && !w.Passed {
			break
		}
		p.outcomes[place] = delivery.Repeated
	}
	p.settle()
	return nil
}

// keyedModel is the upsert for the unit. Its guard stands in the ledger; the
// filter only keeps off documents of somebody else.
func (u *unit) keyedModel(writes []projection.Write, now time.Time) mongo.WriteModel {
	last := u.last(writes)
	filter := bson.D{{Key: "_id", Value: last.ID}, {Key: bookkeeping + ".sequence", Value: bson.D{{Key: "$exists", Value: true}}}}
	relay := append(position(last, now), bson.E{Key: "aggregateId", Value: last.Event.AggregateID})
	if last.Delete {
		return mongo.NewReplaceOneModel().SetFilter(filter).SetUpsert(true).
			SetReplacement(bson.D{{Key: bookkeeping, Value: append(relay, bson.E{Key: "deletedAt", Value: now})}})
	}
	update := last.Update
	if len(u.writes) > 1 {
		update = u.fold.update()
	}
	return mongo.NewUpdateOneModel().SetFilter(filter).SetUpsert(true).SetUpdate(withSet(update, bson.E{Key: bookkeeping, Value: relay}))
}

// collections are those that the writes at places go to, in order of appearance.
// A write that is passed goes to none.
func collections(writes []projection.Write, places []int) []string {
	var names []string
	for _, place := range places {
		if !writes[place].Passed && !slices.Contains(names, writes[place].Collection) {
			names = append(names, writes[place].Collection)
		}
	}
	return names
}

// accounts are those of the ledger that guard the writes at places, in order of
// appearance.
func accounts(writes []projection.Write, places []int) []account {
	var all []account
	for _, place := range places {
		if a := accountOf(&writes[place]); writes[place].Keyed && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all
}

func ofAccount(writes []projection.Write, places []int, a account) []int {
	var mine []int
	for _, place := range places {
		if writes[place].Keyed && accountOf(&writes[place]) == a {
			mine = append(mine, place)
		}
	}
	return mine
}

func inCollection(writes []projection.Write, places []int, collection string) []int {
	var in []int
	for _, place := range places {
		if writes[place].Collection == collection && !writes[place].Passed {
			in = append(in, place)
		}
	}
	return in
}
