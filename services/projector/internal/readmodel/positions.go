package readmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
)

// ErrPositionsLost means that documents which many aggregates change show events
// that the ledger does not have, although both are stored together: entries of the
// ledger were deleted, or are of another backup than the documents, or of the
// projection's former name. What comes again would be counted again.
var ErrPositionsLost = errors.New("positions are lost")

// shownEvent is the last event that a document of many aggregates shows.
type shownEvent struct {
	Document    bson.RawValue     `bson:"document"` // its _id
	AggregateID string            `bson:"aggregateId"`
	Sequence    contract.Sequence `bson:"sequence"`
}

// shown is what those documents of a collection show that a stage lets through and
// many aggregates change.
func (s *Writes) shown(ctx context.Context, collection string, some bson.D) (all []shownEvent, err error) {
	cursor, err := s.db.Collection(collection).Aggregate(ctx, mongo.Pipeline{
		some,
		{{Key: "$match", Value: bson.D{{Key: ofAggregates, Value: bson.D{{Key: "$type", Value: "string"}}}}}},
		{{Key: "$replaceWith", Value: bson.D{{Key: "$mergeObjects", Value: bson.A{"$" + bookkeeping, bson.D{{Key: "document", Value: "$_id"}}}}}}},
	})
	if err == nil {
		err = cursor.All(ctx, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("read documents of %q: %w", collection, err)
	}
	return all, nil
}

// noted tells whether the ledger has what a document, read before, shows. The
// transaction waits for one that is being committed on another shard.
func (s *Writes) noted(ctx context.Context, name string, d shownEvent) (noted bool, err error) {
	err = s.together(ctx, func(ctx context.Context) error {
		noted, err = s.ReachedKeyed(ctx, name, d.AggregateID, d.Sequence)
		return err
	})
	return noted, err
}

// unnoted says what a document shows that the ledger does not have.
func unnoted(name, collection string, d shownEvent) string {
	return fmt.Sprintf("document %s of %q shows sequence %s of aggregate %q, and %q does not have it for projection %q",
		d.Document, collection, d.Sequence, d.AggregateID, projection.Positions, name)
}

func lost(name, collection string, d shownEvent) error {
	return fmt.Errorf("%w: %s. "+
		"Entries were deleted, or are of another backup, or the projection had another name, and what comes again would be counted twice. "+
		"Restore both collections from one backup, or build another version of the projection, "+
		"or carry the entries over, or note what the documents show: docs/operations.md, \"Lost positions\"",
		ErrPositionsLost, unnoted(name, collection, d))
}

// positionsOf finds the positions of a projection by the order of their keys.
func positionsOf(name string) bson.D {
	return bson.D{{Key: "_id", Value: bson.D{
		{Key: "$gte", Value: bson.D{{Key: "projection", Value: name}, {Key: "aggregateId", Value: ""}}},
		{Key: "$lt", Value: bson.D{{Key: "projection", Value: name}, {Key: "aggregateId", Value: bson.MaxKey{}}}},
	}}}
}

// begun is for a transaction that has created the first entries of aggregates for a
// projection: ErrPositionsLost where the ledger has no other one of the projection,
// and a collection of it has documents that show events.
func (p *transaction) begun(ctx context.Context, name string, created []positionKey, places []int) error {
	own := bson.A{}
	for _, a := range created {
		own = append(own, a)
	}
	others := append(positionsOf(name), bson.E{Key: "$nor", Value: bson.A{bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: own}}}}}})
	if there, err := p.store.there(ctx, projection.Positions, others); err != nil || there {
		return err
	}
	for _, collection := range p.store.collectionsOf(name, p.writes, places) {
		all, err := p.store.shown(ctx, collection, bson.D{{Key: "$limit", Value: sampled}})
		if err != nil {
			return err
		}
		if len(all) > 0 {
			return lost(name, collection, all[0])
		}
	}
	return nil
}

// collectionsOf are those of a projection, as far as they are known.
func (s *Writes) collectionsOf(name string, writes []projection.Write, places []int) []string {
	if i := slices.IndexFunc(s.parts, func(part projection.Part) bool { return part.Name == name }); i >= 0 {
		return s.parts[i].Collections
	}
	mine := slices.DeleteFunc(slices.Clone(places), func(place int) bool { return writes[place].Projection != name })
	return collections(writes, mine)
}

// unapplied keeps a keyed write off a document that shows its event, or a later one
// of the aggregate, which a ledger that has it keeps from coming so far.
func (u *coalescedWrite) unapplied(writes []projection.Write) bson.E {
	var clauses bson.A
	var aggregates []string
	for _, place := range u.writes {
		e := writes[place].Event
		if slices.Contains(aggregates, e.AggregateID) {
			continue
		}
		aggregates = append(aggregates, e.AggregateID)
		from := "$gte"
		if u.again && e == u.first(writes).Event {
			from = "$gt" // the document shows the event rightly
		}
		clauses = append(clauses, bson.D{
			{Key: ofAggregates, Value: e.AggregateID},
			{Key: bookkeeping + ".sequence", Value: bson.D{{Key: from, Value: e.Sequence}}},
		})
	}
	return bson.E{Key: "$nor", Value: clauses}
}
