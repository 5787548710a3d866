package readmodel

import (
	"cmp"
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
	"changerelay/services/projector/internal/readmodel/reply"
)

// positionKey is a key of the ledger: how far an aggregate's events are in the
// documents of a projection whose documents many aggregates change. The guard
// stands there, and moves in one transaction with the documents.
type positionKey struct {
	Projection  string `bson:"projection"`
	AggregateID string `bson:"aggregateId"`
}

// transaction stores writes that belong together: those to documents of another key,
// whose guard stands in the ledger, and those of events that write to several
// collections. Each run of events goes in one transaction, so that an event which
// one collection refuses is stored in none, and nothing after it either.
type transaction struct {
	store    *Writes
	writes   []projection.Write
	outcomes []delivery.Outcome
	pending  []int // places in writes that are not stored yet, in order
	// scope is alone once a coalesced write was refused.
	scope scope
	// single: events go one by one, since a command was refused as a whole.
	single bool
	// known are the outcomes of writes whose events the last transaction found skipped, or
	// applied, before.
	known map[int]delivery.Outcome
}

func positionKeyOf(w *projection.Write) positionKey {
	return positionKey{w.Projection, w.Event.AggregateID}
}

// run stores rising runs of the pending writes, each in a transaction. A round
// settles at least one write, takes coalesced writes apart, or ends it.
func (p *transaction) run(ctx context.Context) error {
	for len(p.pending) > 0 {
		rising := p.rising()
		err := p.send(ctx, rising)
		refusal, isRefused := errors.AsType[*refusedError](err)
		seen, isSeen := errors.AsType[*seenError](err)
		_, isRejected := errors.AsType[*delivery.RejectedError](err)
		switch {
		case err == nil:
			for _, place := range rising {
				p.outcomes[place] = cmp.Or(p.known[place], delivery.Applied)
			}
			p.pending = p.pending[len(rising):]
		case isSeen:
			err = p.confirm(ctx, seen.key)
		case isRefused:
			err = p.judge(ctx, rising, refusal)
		case isRejected:
			// As it is.
		default:
			err = fmt.Errorf("write %s: %w", p.about(), reply.WithoutData(err))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// about names the projections whose writes are pending, for an error.
func (p *transaction) about() string {
	var names []string
	for _, place := range p.pending {
		if name := p.writes[place].Projection; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return fmt.Sprintf("projections %q", names)
}

// send stores a run: in a transaction, unless one entry of the ledger, which is there,
// is all that changes.
func (p *transaction) send(ctx context.Context, places []int) error {
	if guards := positionKeys(p.writes, places); len(collections(p.writes, places)) == 0 && len(guards) == 1 && !skips(p.writes) && !mends(p.writes) {
		if moved, err := p.move(ctx, guards[0], places, time.Now(), false); err != nil || moved {
			return err
		}
	}
	return p.store.together(ctx, func(ctx context.Context) error { return p.write(ctx, places) })
}

// rising returns the first pending writes of one source whose sequences rise; writes of
// the same message belong together. What comes after is a repeat or a conflict, or is to be
// compared with what those before it leave.
func (p *transaction) rising() []int {
	for i := 1; i < len(p.pending); i++ {
		last, next := p.writes[p.pending[i-1]].Event, p.writes[p.pending[i]].Event
		if next != last && (p.single || next.Sequence <= last.Sequence || next.Source != last.Source) {
			return p.pending[:i]
		}
	}
	return p.pending
}

// write is one transaction: each position of the ledger moves from below its
// first event to its last, and the documents change.
func (p *transaction) write(ctx context.Context, places []int) error {
	now := time.Now()
	if err := p.know(ctx, places); err != nil {
		return err
	}
	if err := p.moveAll(ctx, places, now); err != nil {
		return err
	}
	for _, collection := range collections(p.writes, places) {
		if err := p.writeTo(ctx, collection, inCollection(p.writes, places, collection), now); err != nil {
			return err
		}
	}
	if err := p.mend(ctx, places, now); err != nil {
		return err
	}
	return p.record(ctx, places, now)
}

// writeTo stores what goes to one collection. A write that depends on its document
// begins a bulk write of its own, so that it sees what those before it have made.
func (p *transaction) writeTo(ctx context.Context, collection string, places []int, now time.Time) error {
	writes := p.writes
	for len(places) > 0 {
		if writes[places[0]].Complete != nil {
			done, err := p.complete(ctx, places[0])
			if err != nil {
				return err
			}
			if &writes[0] == &p.writes[0] {
				writes = slices.Clone(writes) // the transaction may begin again
			}
			writes[places[0]] = done
		}
		next := 1
		for next < len(places) && writes[places[next]].Complete == nil {
			next++
		}
		if err := p.bulk(ctx, collection, coalesce(writes, places[:next], p.scope), writes, now); err != nil {
			return err
		}
		places = places[next:]
	}
	return nil
}

func (p *transaction) bulk(ctx context.Context, collection string, sent []*coalescedWrite, writes []projection.Write, now time.Time) error {
	models := make([]mongo.WriteModel, len(sent))
	for i, u := range sent {
		models[i] = u.model(writes, now, p.store.sources)
		if u.first(writes).Keyed {
			models[i] = u.keyedModel(writes, now)
		}
	}
	result, err := p.store.db.Collection(collection).BulkWrite(ctx, models, options.BulkWrite().SetOrdered(true))
	p.store.witnessed.inserted(collection, now, result)
	if refusal, is := refused(err, sent); err != nil && is {
		return refusal
	}
	return err
}

// complete is the write at a place, made of its document as the transaction sees it.
// Who changes that document meanwhile is in the transaction's way, which begins again.
// Of a document that is not below the event nothing is made: the guard is to find it.
func (p *transaction) complete(ctx context.Context, place int) (projection.Write, error) {
	w := p.writes[place]
	document, err := p.store.db.Collection(w.Collection).FindOne(ctx, bson.D{{Key: "_id", Value: w.ID}}).Raw()
	if err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
		return w, fmt.Errorf("read a document of %q: %w", w.Collection, err)
	}
	if sequence, is := document.Lookup(bookkeeping, "sequence").StringValueOK(); document != nil && (!is || contract.Sequence(sequence) >= w.Event.Sequence) {
		w.Complete = nil
		return w, nil
	}
	state, err := stateOf(document)
	if err != nil {
		return w, fmt.Errorf("read a document of %q: %w", w.Collection, err)
	}
	done, err := w.Complete(state)
	switch {
	case errors.Is(err, projection.ErrInterrupted):
		return w, err
	case err != nil:
		return w, refuse(place, projection.Evaluate, err.Error())
	}
	done.By, done.Halted = w.By, w.Halted
	return done, nil
}

// stateOf is what events have made of a document: without its key, and without the
// bookkeeping, which says when and by whom it was written; nil where it is deleted, or not there.
func stateOf(document bson.Raw) (bson.Raw, error) {
	if document == nil || document.Lookup(bookkeeping, "deletedAt").Type != 0 {
		return nil, nil
	}
	elements, err := document.Elements()
	if err != nil {
		return nil, err
	}
	state := make(bson.D, 0, len(elements))
	for _, element := range elements {
		if key := element.Key(); key != bookkeeping && key != "_id" {
			state = append(state, bson.E{Key: element.Key(), Value: element.Value()})
		}
	}
	return bson.Marshal(state)
}

// moveAll moves the positions of a run, and looks at what those stand on that are new.
func (p *transaction) moveAll(ctx context.Context, places []int, now time.Time) error {
	created := map[string][]positionKey{}
	for _, a := range positionKeys(p.writes, places) {
		moved, err := p.move(ctx, a, places, now, true)
		if err != nil {
			return err
		}
		if !moved {
			created[a.Projection] = append(created[a.Projection], a)
		}
	}
	for name, keys := range created {
		if err := p.begun(ctx, name, keys, places); err != nil {
			return err
		}
	}
	return nil
}

// move moves a position over its events, and tells whether it was there. With
// create one that was not is there now.
func (p *transaction) move(ctx context.Context, a positionKey, places []int, now time.Time, create bool) (moved bool, err error) {
	mine := ofPosition(p.writes, places, a)
	first, last := p.writes[mine[0]].Event, p.writes[mine[len(mine)-1]].Event
	position := bson.D{{Key: "$set", Value: append(bson.D{{Key: "sequence", Value: last.Sequence}, {Key: "eventId", Value: last.ID}, {Key: "eventType", Value: last.Type}, {Key: "operation", Value: last.Operation}, {Key: "updatedAt", Value: now}}, noted(last)...)}}
	result, err := p.store.db.Collection(projection.Positions).UpdateOne(ctx, a.guard(first, p.store.sources), with(position, "$setOnInsert", beginning(begun, first)...),
		options.UpdateOne().SetUpsert(create))
	if mongo.IsDuplicateKeyError(err) {
		return false, &seenError{a}
	}
	if err != nil {
		return false, err
	}
	return result.MatchedCount > 0, nil
}

// guard matches the position only below an event, of a source that it goes on from.
func (a positionKey) guard(e *contract.Event, of *sources) bson.D {
	return append(bson.D{{Key: "_id", Value: a}, {Key: "sequence", Value: bson.D{{Key: "$lt", Value: e.Sequence}}}}, of.ofSource("source", e)...)
}

// keyedModel is the upsert for the coalesced write. Its guard stands in the ledger; the filter
// keeps off documents of somebody else, and those that show that the ledger is lost.
func (u *coalescedWrite) keyedModel(writes []projection.Write, now time.Time) mongo.WriteModel {
	last := u.last(writes)
	filter := bson.D{{Key: "_id", Value: last.ID}, {Key: bookkeeping + ".sequence", Value: bson.D{{Key: "$exists", Value: true}}}, u.unapplied(writes)}
	relay := append(position(last, now), bson.E{Key: "aggregateId", Value: last.Event.AggregateID})
	if last.Delete {
		return mongo.NewReplaceOneModel().SetFilter(filter).SetUpsert(true).
			SetReplacement(bson.D{{Key: bookkeeping, Value: append(relay, bson.E{Key: "deletedAt", Value: now})}})
	}
	update := last.Update
	if len(u.writes) > 1 {
		update = u.update.update()
	}
	return mongo.NewUpdateOneModel().SetFilter(filter).SetUpsert(true).SetUpdate(with(update, "$set", bson.E{Key: bookkeeping, Value: relay}))
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

// positionKeys are those of the ledger that guard the writes at places, in order of
// appearance.
func positionKeys(writes []projection.Write, places []int) []positionKey {
	var all []positionKey
	for _, place := range places {
		if a := positionKeyOf(&writes[place]); writes[place].Keyed && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all
}

func ofPosition(writes []projection.Write, places []int, a positionKey) []int {
	var mine []int
	for _, place := range places {
		if writes[place].Keyed && positionKeyOf(&writes[place]) == a {
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
