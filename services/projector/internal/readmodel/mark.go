package readmodel

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/projector/internal/projection"
)

// halted is where a read document says that its aggregate is halted.
const halted = bookkeeping + ".halted"

func markOf(h *projection.Halted) bson.D {
	return bson.D{{Key: "since", Value: h.Since}, {Key: "reason", Value: h.Reason}, {Key: "eventId", Value: h.EventID}}
}

// mark marks the aggregate's own documents. One that does not exist is not
// made for it: it would look as if the aggregate had been projected.
func (s *Halts) mark(ctx context.Context, aggregate string, h *projection.Halted) error {
	return s.setMark(ctx, aggregate, bson.D{{Key: "$set", Value: bson.D{{Key: halted, Value: markOf(h)}}}})
}

func (s *Halts) unmark(ctx context.Context, aggregate string) error {
	return s.setMark(ctx, aggregate, bson.D{{Key: "$unset", Value: bson.D{{Key: halted, Value: ""}}}})
}

func (s *Halts) setMark(ctx context.Context, aggregate string, update bson.D) error {
	ours := bson.D{{Key: "_id", Value: aggregate}, {Key: bookkeeping + ".sequence", Value: bson.D{{Key: "$exists", Value: true}}}}
	for _, collection := range s.marked {
		if _, err := s.db.Collection(collection).UpdateOne(ctx, ours, update); err != nil {
			return fmt.Errorf("mark the document of aggregate %q in %q: %w", aggregate, collection, err)
		}
	}
	return nil
}

// Mark implements delivery.ParkedMessages.
func (s *Halts) Mark(ctx context.Context, aggregate string) (*projection.Halted, error) {
	var h haltedAggregate
	err := s.own(projection.HaltedAggregates).FindOne(ctx, bson.D{{Key: "_id", Value: aggregate}}).Decode(&h)
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look up halted aggregate %q: %w", aggregate, err)
	}
	return &projection.Halted{Since: h.HaltedAt, Reason: h.Reason, EventID: h.EventID}, nil
}
