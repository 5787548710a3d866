package readmodel

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// Reached tells whether a collection's document of an aggregate, which is its own,
// is at a sequence or beyond it, as a majority has it.
func (s *Writes) Reached(ctx context.Context, collection, aggregate string, sequence contract.Sequence) (bool, error) {
	return s.there(ctx, collection, bson.D{
		{Key: "_id", Value: aggregate},
		{Key: ofAggregates, Value: nil},
		{Key: bookkeeping + ".sequence", Value: from(sequence)},
	})
}

// ReachedKeyed is Reached for a projection whose documents many aggregates change.
func (s *Writes) ReachedKeyed(ctx context.Context, name, aggregate string, sequence contract.Sequence) (bool, error) {
	return s.there(ctx, projection.Positions, bson.D{{Key: "_id", Value: positionKey{name, aggregate}}, {Key: "sequence", Value: from(sequence)}})
}

// ofVersion is a sequence that a version makes, and no position.
const ofVersion = `^[0-9]{19}$`

var isOfVersion = regexp.MustCompile(ofVersion)

// from matches sequences that are not before one. Those of versions sort before those of
// positions, and do not compare with them.
func from(sequence contract.Sequence) bson.D {
	matches := bson.D{{Key: "$gte", Value: sequence}}
	if isOfVersion.MatchString(string(sequence)) {
		matches = append(matches, bson.E{Key: "$regex", Value: ofVersion})
	}
	return matches
}

// Position implements delivery.ParkedMessages.
func (s *Writes) Position(ctx context.Context, w *projection.Write) (delivery.Position, error) {
	collection, key, path := w.Collection, w.ID, []string{bookkeeping}
	if w.Keyed {
		collection, key, path = projection.Positions, positionKeyOf(w), nil
	}
	document, err := s.db.Collection(collection).FindOne(ctx, bson.D{{Key: "_id", Value: key}}).Raw()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return delivery.Position{}, nil
	}
	if err != nil {
		return delivery.Position{}, fmt.Errorf("look up a position in %q: %w", collection, err)
	}
	at, _ := placeOf(document, path...)
	other, _, err := s.sources.apart(ctx, w.Event, at)
	return delivery.Position{Sequence: at.Sequence, EventID: at.EventID, First: at.First, Continued: another(w.Event, at) && other == "", Other: other}, err
}
