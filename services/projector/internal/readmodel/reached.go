package readmodel

import (
	"context"
	"errors"
	"fmt"

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
		{Key: bookkeeping + ".sequence", Value: bson.D{{Key: "$gte", Value: sequence}}},
	})
}

// ReachedKeyed is Reached for a projection whose documents many aggregates change.
func (s *Writes) ReachedKeyed(ctx context.Context, name, aggregate string, sequence contract.Sequence) (bool, error) {
	return s.there(ctx, projection.Positions, bson.D{{Key: "_id", Value: account{name, aggregate}}, {Key: "sequence", Value: bson.D{{Key: "$gte", Value: sequence}}}})
}

// Position implements delivery.ParkedMessages.
func (s *Writes) Position(ctx context.Context, w *projection.Write) (delivery.Position, error) {
	collection, key, path := w.Collection, w.ID, []string{bookkeeping}
	if w.Keyed {
		collection, key, path = projection.Positions, accountOf(w), nil
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
	return delivery.Position{Sequence: at.Sequence, EventID: at.EventID, Continued: another(w.Event, at) && other == "", Other: other}, err
}
