package readmodel

import (
	"cmp"
	"context"
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

// begun is where a position says with which sequence the aggregate began there: that of
// the first event which made the document, or its entry in the ledger. It is absent
// where that is not known, because an older release has written the position, and where
// nothing before it is missing: behind a tombstone, and of events without versions,
// whose sequences say nothing of what was before them.
const begun = "first"

// NotFromTheBeginning is how the reason of a halt begins that is for an event from
// before the one with which its aggregate began.
const NotFromTheBeginning = "the read model did not begin with the aggregate"

// beginning is the field in which a position says that it begins with an event.
func beginning(field string, e *contract.Event) bson.D {
	if !e.Version.Known {
		return nil
	}
	return bson.D{{Key: field, Value: e.Sequence}}
}

// lacks tells whether an event that is not above a position was never applied there,
// although it would have changed something: it is from before the first. An event that
// was dealt with before the first, and made no document, would make none now.
func lacks(w *projection.Write, first contract.Sequence) (bool, error) {
	if first == "" || !w.Event.Version.Known || w.Event.Sequence >= first || w.Whole || !w.Changes() {
		return false, nil
	}
	if w.Complete == nil || w.Keyed {
		return true, nil
	}
	return w.Makes()
}

// repeats are those of writes, at places and none above a position, that are repeats: up
// to the first that is lacking and live, which rejects it where it comes first. What is
// lacking and resent is noted, and then dealt with as a repeat: its aggregate goes on.
func (s *Writes) repeats(ctx context.Context, writes []projection.Write, places []int, first contract.Sequence) ([]int, error) {
	var lacking []*projection.Write
	for i, place := range places {
		w := &writes[place]
		lack, err := lacks(w, first)
		if err != nil {
			return nil, err
		}
		live := w.Event.Resend.ID == ""
		if live && w.Delete {
			continue // there was nothing to delete
		}
		if live && lack {
			if lack, err = s.unrecorded(ctx, w); err != nil {
				return nil, err
			}
		}
		if lack && live {
			if i == 0 {
				return nil, reject(place, lacked(w, first))
			}
			places = places[:i]
			break
		}
		if lack {
			lacking = append(lacking, w)
		}
	}
	return places, s.noteLacks(ctx, lacking)
}

// unrecorded tells whether there is no record that the projection has skipped an event. One
// that it has skipped before its first may come again, once it can be applied.
func (s *Writes) unrecorded(ctx context.Context, w *projection.Write) (bool, error) {
	recorded, err := s.there(ctx, s.own(projection.SkippedEvents).Name(), bson.D{{Key: "_id", Value: skippedKeyOf(w)}, standing})
	return !recorded, err
}

// lacked says why a live event that is lacking halts its aggregate.
func lacked(w *projection.Write, first contract.Sequence) string {
	return fmt.Sprintf("%s: projection %q began aggregate %q at sequence %s, and this event, of sequence %s, comes from before and was never applied to it. "+
		"It cannot be applied in order any more: give it up with projector parked discard, and redrive what is left; then, where it is not to be missed, %s",
		NotFromTheBeginning, w.Projection, w.Event.AggregateID, first, w.Event.Sequence, delivery.Rebuild)
}

// Lack is an aggregate that began in a projection later than its first events. Resent
// ones from before that beginning came, which the projection had never been given. Or it is
// one of a version that was filled, and that began or went on behind a hole. It is a document
// of applied_positions.
type Lack struct {
	Key lackKey `bson:"_id" json:"-"`
	// Projection and Aggregate are those of the key.
	Projection string `bson:"-" json:"projection"`
	Aggregate  string `bson:"-" json:"aggregate"`
	// Collection is where the aggregate's own document is; empty where its position is
	// in the ledger.
	Collection string `bson:"collection" json:"collection,omitempty"`
	// First is where the aggregate begins, Missing the lowest sequence that is known to
	// be missing, and Latest the highest.
	First   contract.Sequence `bson:"-" json:"begins_at"`
	Missing contract.Sequence `bson:"missing" json:"first_missing"`
	Latest  contract.Sequence `bson:"latest" json:"last_missing"`
	// Within tells that there are holes before where it begins or behind that, which a version
	// that was filled has. A hole begins with Missing, or before that.
	Within bool `bson:"within,omitempty" json:"within,omitempty"`
	// Deleted is that of an event among them which deletes the document: those before it
	// are not missed.
	Deleted contract.Sequence `bson:"deleted,omitempty" json:"-"`
	Resend  string            `bson:"resend" json:"resend"`
	At      time.Time         `bson:"at" json:"at"`
	// Accepted is where the aggregate began when an operator let that be, or up to where
	// holes were accepted.
	Accepted contract.Sequence `bson:"accepted,omitempty" json:"-"`
	// AcceptedFrom is what Missing was when holes were accepted: what is known to be missing
	// before that was not. It is absent where all that was before the beginning was.
	AcceptedFrom contract.Sequence `bson:"acceptedFrom,omitempty" json:"-"`
}

// lackKey is in a range of its own.
type lackKey struct {
	Note      string `bson:"note"` // notedLack
	Account   string `bson:"account"`
	Aggregate string `bson:"aggregate"`
}

const notedLack = "lack"

func lackOf(w *projection.Write) lackKey {
	return lackKey{notedLack, w.Projection, w.Event.AggregateID}
}

// noteLacks notes that resent events are lacking, but those that an operator has
// discarded: nobody is to take the read model for complete.
func (s *Writes) noteLacks(ctx context.Context, lacking []*projection.Write) error {
	for _, w := range lacking {
		discarded, err := s.parking.Discarded(ctx, w.Event)
		if err != nil {
			return err
		}
		if discarded {
			continue
		}
		note := bson.D{
			{Key: "$min", Value: bson.D{{Key: "missing", Value: w.Event.Sequence}}},
			{Key: "$max", Value: bson.D{{Key: "latest", Value: w.Event.Sequence}}},
			{Key: "$set", Value: bson.D{{Key: "collection", Value: ownCollection(w)}, {Key: "resend", Value: w.Event.Resend.ID}, {Key: "at", Value: time.Now()}}},
		}
		if w.Delete { // what came before it is gone from the source's state, too
			note = bson.D{{Key: "$max", Value: bson.D{{Key: "deleted", Value: w.Event.Sequence}}}}
		}
		_, err = s.own(projection.Positions).UpdateOne(ctx, bson.D{{Key: "_id", Value: lackOf(w)}}, note, options.UpdateOne().SetUpsert(!w.Delete))
		if err != nil {
			return fmt.Errorf("note in %q that aggregate %q lacks event %q: %w", projection.Positions, w.Event.AggregateID, w.Event.ID, err)
		}
	}
	return nil
}

// ownCollection is where the document of a write's aggregate is, "" where its position is in
// the ledger.
func ownCollection(w *projection.Write) string {
	if w.Keyed {
		return ""
	}
	return w.Collection
}

// lacksAtOnce is how many notes are compared with positions at once.
const lacksAtOnce = 200

// Lacks calls each for the aggregates of the group that lack what was resent, by
// projection and aggregate: of one projection, as the ledger has its name, or of all
// where it is "". One that has begun anew since lacks nothing, nor one that was deleted.
func (s *Store) Lacks(ctx context.Context, of string, each func(Lack) error) error {
	cursor, err := s.own(projection.Positions).Find(ctx, lacksOf(of), options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}).SetBatchSize(lacksAtOnce))
	if err != nil {
		return fmt.Errorf("read in %q what is lacking: %w", projection.Positions, err)
	}
	defer func() { _ = cursor.Close(context.WithoutCancel(ctx)) }()
	for {
		var page []Lack
		for len(page) < lacksAtOnce && cursor.Next(ctx) {
			var l Lack
			if err := cursor.Decode(&l); err != nil {
				return fmt.Errorf("read in %q what is lacking: %w", projection.Positions, err)
			}
			page = append(page, l)
		}
		if len(page) == 0 {
			break
		}
		if err := s.still(ctx, page, each); err != nil {
			return err
		}
	}
	if err := cursor.Err(); err != nil {
		return fmt.Errorf("read in %q what is lacking: %w", projection.Positions, err)
	}
	return nil
}

// lacksOf finds the notes of a projection, or of all where it is "".
func lacksOf(name string) bson.D {
	from, to := any(name), any(name+"\x00")
	if name == "" {
		from, to = "", bson.MaxKey{}
	}
	return bson.D{{Key: "_id", Value: bson.D{
		{Key: "$gte", Value: bson.D{{Key: "note", Value: notedLack}, {Key: "account", Value: from}}},
		{Key: "$lt", Value: bson.D{{Key: "note", Value: notedLack}, {Key: "account", Value: to}}},
	}}}
}

// still calls each for those that lack something as their positions are now.
func (s *Store) still(ctx context.Context, page []Lack, each func(Lack) error) error {
	byCollection := map[string]bson.A{}
	for i := range page {
		l := &page[i]
		byCollection[l.Collection] = append(byCollection[l.Collection], l.at().key())
	}
	firsts := map[positionAt]contract.Sequence{}
	for collection, keys := range byCollection {
		if err := s.firsts(ctx, collection, keys, firsts); err != nil {
			return err
		}
	}
	for _, l := range page {
		l.Projection, l.Aggregate, l.First = l.Key.Account, l.Key.Aggregate, firsts[l.at()]
		if !l.Within && l.First <= l.Missing || l.Latest <= l.Deleted || l.accepted() {
			continue
		}
		if err := each(l); err != nil {
			return err
		}
	}
	return nil
}

// upTo is up to where the aggregate is known to lack something.
func (l *Lack) upTo() contract.Sequence {
	if l.Within {
		return max(l.First, l.Latest)
	}
	return l.First
}

// accepted tells whether an operator has let be all that the aggregate is known to lack.
func (l *Lack) accepted() bool {
	return l.Accepted != "" && l.upTo() <= l.Accepted && l.Missing >= l.AcceptedFrom
}

// positionAt is where a position is: in a document of a collection, or in the ledger.
type positionAt struct {
	collection string
	position   positionKey // without a projection in a collection
}

func (l *Lack) at() positionAt {
	at := positionAt{l.Collection, positionKey{AggregateID: l.Key.Aggregate}}
	if l.Collection == "" {
		at.position.Projection = l.Key.Account
	}
	return at
}

// key is the position's _id there.
func (at positionAt) key() any {
	if at.collection == "" {
		return at.position
	}
	return at.position.AggregateID
}

// firsts adds where positions begin, of a collection's own documents, or of the ledger.
func (s *Store) firsts(ctx context.Context, collection string, keys bson.A, firsts map[positionAt]contract.Sequence) error {
	from, path := cmp.Or(collection, projection.Positions), begun
	if collection != "" {
		path = bookkeeping + "." + begun
	}
	cursor, err := s.db.Collection(from).Find(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: keys}}}},
		options.Find().SetProjection(bson.D{{Key: path, Value: 1}}))
	if err != nil {
		return fmt.Errorf("read in %q where aggregates begin: %w", from, err)
	}
	defer func() { _ = cursor.Close(context.WithoutCancel(ctx)) }()
	for cursor.Next(ctx) {
		var found struct {
			ID    bson.RawValue     `bson:"_id"`
			First contract.Sequence `bson:"first"`
			Relay struct {
				First contract.Sequence `bson:"first"`
			} `bson:"_relay"`
		}
		if err := cursor.Decode(&found); err != nil {
			return fmt.Errorf("read in %q where aggregates begin: %w", from, err)
		}
		if aggregate, ok := found.ID.StringValueOK(); ok {
			firsts[positionAt{collection, positionKey{AggregateID: aggregate}}] = found.Relay.First
			continue
		}
		var a positionKey
		if err := found.ID.Unmarshal(&a); err != nil {
			return fmt.Errorf("read in %q where aggregates begin: %w", from, err)
		}
		firsts[positionAt{collection, a}] = found.First
	}
	return cursor.Err()
}

// AcceptLack lets an aggregate begin where it does, and have the holes that it has.
func (s *Store) AcceptLack(ctx context.Context, l *Lack) error {
	accepted := bson.D{{Key: "accepted", Value: l.upTo()}}
	if l.Within {
		accepted = append(accepted, bson.E{Key: "acceptedFrom", Value: l.Missing})
	}
	_, err := s.own(projection.Positions).UpdateOne(ctx, bson.D{{Key: "_id", Value: l.Key}}, bson.D{{Key: "$set", Value: accepted}})
	if err != nil {
		return fmt.Errorf("note in %q that aggregate %q may begin at %s: %w", projection.Positions, l.Aggregate, l.First, err)
	}
	return nil
}

// Late is an aggregate that begins later in one version of a projection than in another.
type Late struct {
	Aggregate string            `bson:"aggregate"`
	First     contract.Sequence `bson:"began"` // in the other
}

// Later are the aggregates that v begins later than live does, up to limit. What is not
// known to begin anywhere is not compared.
func (s *Store) Later(ctx context.Context, v, live *projection.Version, limit int) ([]Late, error) {
	own := mongo.Pipeline{
		{{Key: "$match", Value: bson.D{{Key: bookkeeping + "." + begun, Value: bson.D{{Key: "$gt", Value: ""}}}, {Key: ofAggregates, Value: nil}}}},
		{{Key: "$set", Value: bson.D{{Key: "aggregate", Value: "$_id"}, {Key: "began", Value: "$_relay." + begun}}}},
	}
	late, err := s.later(ctx, live.Collection(), bson.D{}, own, v, limit)
	if err != nil || len(late) > 0 {
		return late, err
	}
	noted := mongo.Pipeline{
		{{Key: "$match", Value: bson.D{{Key: begun, Value: bson.D{{Key: "$gt", Value: ""}}}}}},
		{{Key: "$set", Value: bson.D{{Key: "aggregate", Value: "$_id.aggregateId"}, {Key: "began", Value: "$" + begun}}}},
	}
	return s.later(ctx, projection.Positions, positionsOf(live.Account()), noted, v, limit)
}

// later compares where a version begins aggregates: with its document, where that is the
// aggregate's own, or with an event before it that changed none, which the ledger has.
func (s *Store) later(ctx context.Context, from string, filter bson.D, of mongo.Pipeline, v *projection.Version, limit int) (late []Late, err error) {
	document, entry := bson.D{{Key: "$first", Value: "$document." + bookkeeping + "." + begun}}, bson.D{{Key: "$first", Value: "$entry." + begun}}
	after := func(first any) bson.D { return bson.D{{Key: "$gt", Value: bson.A{first, "$began"}}} }
	none := func(field string) bson.D { return bson.D{{Key: "$eq", Value: bson.A{"$" + field, bson.A{}}}} }
	or := func(some ...any) bson.D { return bson.D{{Key: "$or", Value: bson.A(some)}} }
	pipeline := append(slices.Clone(of), lookUpDocument(v), ownDocument, lookUpEntry(v), lookedUpEntry,
		bson.D{{Key: "$match", Value: bson.D{{Key: "$expr", Value: bson.D{{Key: "$and", Value: bson.A{
			or(none("document"), after(document)), or(none("entry"), after(entry)),
			or(after(document), after(entry)),
		}}}}}}},
		bson.D{{Key: "$limit", Value: limit}},
		bson.D{{Key: "$project", Value: bson.D{{Key: "_id", Value: 0}, {Key: "aggregate", Value: 1}, {Key: "began", Value: 1}}}})
	err = s.pages(ctx, from, filter, func(page bson.D) (enough bool, err error) {
		var found []Late
		cursor, err := s.db.Collection(from).Aggregate(ctx, slices.Concat(mongo.Pipeline{{{Key: "$match", Value: page}}}, pipeline))
		if err == nil {
			err = cursor.All(ctx, &found)
		}
		if err != nil {
			return false, fmt.Errorf("compare in %q where versions begin: %w", from, err)
		}
		late = append(late, found...)
		return len(late) >= limit, nil
	})
	return late[:min(len(late), limit)], err
}
