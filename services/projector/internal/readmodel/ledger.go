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

// keyedPass stores the writes of one account.
type keyedPass struct {
	store    *Store
	account  account
	writes   []projection.Write
	outcomes []delivery.Outcome
	pending  []int // places in writes that are not stored yet, in order
	// fold is alone once a fold of several writes was refused.
	fold reach
	// single: events go one by one, since a command was refused as a whole.
	single bool
}

// keyed stores the pending writes, account by account.
func (s *Store) keyed(ctx context.Context, writes []projection.Write, outcomes []delivery.Outcome, pending []int) error {
	for len(pending) > 0 {
		p := &keyedPass{store: s, account: accountOf(&writes[pending[0]]), writes: writes, outcomes: outcomes, fold: anywhere}
		var others []int
		for _, place := range pending {
			if accountOf(&writes[place]) == p.account {
				p.pending = append(p.pending, place)
			} else {
				others = append(others, place)
			}
		}
		if err := p.run(ctx); err != nil {
			return err
		}
		pending = others
	}
	return nil
}

func accountOf(w *projection.Write) account { return account{w.Projection, w.Event.AggregateID} }

// refusedError means that the server refuses to change the documents: for one
// unit where the server names it. In a transaction it refuses whole commands.
type refusedError struct {
	unit    *unit // nil where unknown
	failure mongo.WriteError
}

func (e *refusedError) Error() string { return e.failure.Message }

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

// errSeen means that the ledger has the first event already.
var errSeen = errors.New("the ledger is not below the event")

// run stores rising runs of the pending writes, each in a transaction. A round
// settles at least one write, takes folds apart, or ends it.
func (p *keyedPass) run(ctx context.Context) error {
	for len(p.pending) > 0 {
		rising := p.rising()
		err := p.store.together(ctx, func(ctx context.Context) error { return p.write(ctx, rising) })
		refusal, isRefused := errors.AsType[*refusedError](err)
		switch {
		case err == nil:
			for _, place := range rising {
				p.outcomes[place] = delivery.Applied
			}
			p.pending = p.pending[len(rising):]
		case errors.Is(err, errSeen):
			err = p.confirm(ctx)
		case isRefused:
			err = p.judge(ctx, rising, refusal)
		default:
			err = fmt.Errorf("write projection %q: %w", p.account.Projection, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rising returns the first pending writes whose sequences rise; writes of the
// same message belong together. What comes after is a repeat or a twin.
func (p *keyedPass) rising() []int {
	for i := 1; i < len(p.pending); i++ {
		last, next := p.writes[p.pending[i-1]].Event, p.writes[p.pending[i]].Event
		if next != last && (p.single || next.Sequence <= last.Sequence) {
			return p.pending[:i]
		}
	}
	return p.pending
}

// write is one transaction: the ledger moves from below the first event to the
// last, and the documents change.
func (p *keyedPass) write(ctx context.Context, places []int) error {
	now := time.Now()
	first, last := p.writes[places[0]].Event, p.writes[places[len(places)-1]].Event
	_, err := p.store.db.Collection(projection.Positions).UpdateOne(ctx,
		bson.D{{Key: "_id", Value: p.account}, {Key: "sequence", Value: bson.D{{Key: "$lt", Value: first.Sequence}}}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "sequence", Value: last.Sequence}, {Key: "eventId", Value: last.ID}, {Key: "eventType", Value: last.Type}, {Key: "updatedAt", Value: now}}}},
		options.UpdateOne().SetUpsert(true))
	if mongo.IsDuplicateKeyError(err) {
		return errSeen
	}
	if err != nil {
		return err
	}
	for _, collection := range collections(p.writes, places) {
		sent := units(p.writes, inCollection(p.writes, places, collection), p.fold)
		models := make([]mongo.WriteModel, len(sent))
		for i, u := range sent {
			models[i] = u.keyedModel(p.writes, now)
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

// judge decides about what was refused. Nothing of its transaction is stored.
func (p *keyedPass) judge(ctx context.Context, sent []int, refusal *refusedError) error {
	taken := refusal.failure.Code == duplicateKey && !ofAnotherIndex(refusal.failure)
	switch {
	case refusal.unit != nil && (taken || len(refusal.unit.writes) == 1):
		sent = refusal.unit.writes[:1]
	case refusal.unit != nil && p.fold != alone, refusal.unit == nil && !p.single:
		p.fold, p.single = alone, refusal.unit == nil
		return nil
	}
	if !taken {
		return reject(sent[0], refusal.failure.Message)
	}
	for _, place := range sent {
		if err := p.foreign(ctx, place); err != nil {
			return err
		}
	}
	return fmt.Errorf("write projection %q: another write got in between", p.account.Projection)
}

// foreign rejects a write whose document is not of the projector.
func (p *keyedPass) foreign(ctx context.Context, place int) error {
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

// confirm looks up how far the ledger is, and takes the writes up to there for
// repeats.
func (p *keyedPass) confirm(ctx context.Context) error {
	var stored entry
	err := p.store.db.Collection(projection.Positions).FindOne(ctx, bson.D{{Key: "_id", Value: p.account}}).Decode(&stored)
	first := p.writes[p.pending[0]].Event
	switch {
	case err != nil && !errors.Is(err, mongo.ErrNoDocuments):
		return fmt.Errorf("read the position of aggregate %q in projection %q: %w", p.account.AggregateID, p.account.Projection, err)
	case err != nil, stored.Sequence < first.Sequence:
		return fmt.Errorf("write projection %q: another write got in between, or a majority does not have it yet", p.account.Projection)
	case twins(first, stored.Sequence, stored.EventID):
		return reject(p.pending[0], twinned(first, stored.EventID))
	}
	for len(p.pending) > 0 {
		e := p.writes[p.pending[0]].Event
		if e.Sequence > stored.Sequence || twins(e, stored.Sequence, stored.EventID) {
			break
		}
		p.outcomes[p.pending[0]] = delivery.Repeated
		p.pending = p.pending[1:]
	}
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
func collections(writes []projection.Write, places []int) []string {
	var names []string
	for _, place := range places {
		if !slices.Contains(names, writes[place].Collection) {
			names = append(names, writes[place].Collection)
		}
	}
	return names
}

func inCollection(writes []projection.Write, places []int, collection string) []int {
	var in []int
	for _, place := range places {
		if writes[place].Collection == collection {
			in = append(in, place)
		}
	}
	return in
}
