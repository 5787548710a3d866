package readmodel

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

var _ delivery.Unhalted = (*Store)(nil)

// Missing implements delivery.Shelf.
func (s *Store) Missing(ctx context.Context, aggregate string) (missing int64, err error) {
	err = s.together(ctx, func(ctx context.Context) error {
		missing = 0
		var halt haltedAggregate
		err := s.own(projection.HaltedAggregates).FindOne(ctx, bson.D{{Key: "_id", Value: aggregate}}).Decode(&halt)
		if errors.Is(err, mongo.ErrNoDocuments) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look up halted aggregate %q: %w", aggregate, err)
		}
		there, err := s.own(projection.ParkedMessages).CountDocuments(ctx, ofAggregate(aggregate))
		if err != nil {
			return fmt.Errorf("count parked messages of aggregate %q: %w", aggregate, err)
		}
		missing = max(0, halt.Kept-there)
		return nil
	})
	return missing, err
}

// Shelved implements delivery.Shelf.
func (s *Store) Shelved(ctx context.Context, e *contract.Event) (bool, error) {
	return s.there(ctx, projection.OfGroup(projection.ParkedMessages, s.group), bson.D{{Key: "_id", Value: parkedKey{e.AggregateID, e.Sequence, e.ID}}})
}

// Unhalted implements delivery.Unhalted. It goes from aggregate to aggregate along
// the keys.
func (s *Store) Unhalted(ctx context.Context, aggregates ...string) ([]contract.Event, error) {
	if len(aggregates) > 0 {
		var events []contract.Event
		for _, aggregate := range aggregates {
			e, err := s.unhalted(ctx, ofAggregate(aggregate), nil)
			if err != nil {
				return nil, err
			}
			if e != nil && e.ID != "" {
				events = append(events, *e)
			}
		}
		return events, nil
	}
	halts, err := s.List(ctx, 0)
	if err != nil {
		return nil, err
	}
	var events []contract.Event
	after := bson.D{}
	for {
		e, err := s.unhalted(ctx, after, halts)
		if err != nil || e == nil {
			return events, err
		}
		if e.ID != "" {
			events = append(events, *e)
		}
		after = bson.D{{Key: "_id", Value: bson.D{{Key: "$gt", Value: bson.D{{Key: "aggregateId", Value: e.AggregateID}, {Key: "sequence", Value: bson.MaxKey{}}}}}}}
	}
}

// unhalted is the first parked message that is found, with no more than its
// aggregate where that is halted, or was before; nil where there is none.
func (s *Store) unhalted(ctx context.Context, filter bson.D, before map[string]delivery.HaltID) (*contract.Event, error) {
	var p parkedMessage
	first := options.FindOne().SetSort(bson.D{{Key: "_id", Value: 1}}).SetProjection(bson.D{{Key: "position", Value: 1}, {Key: "eventType", Value: 1}})
	err := s.own(projection.ParkedMessages).FindOne(ctx, filter, first).Decode(&p)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for parked messages: %w", err)
	}
	e := &contract.Event{AggregateID: p.Key.AggregateID}
	if before[e.AggregateID] != "" {
		return e, nil
	}
	halt, err := s.Halted(ctx, e.AggregateID)
	if err != nil || halt != "" {
		return e, err
	}
	// Lifted since the message was looked for, it was applied before.
	err = s.own(projection.ParkedMessages).FindOne(ctx, ofAggregate(e.AggregateID), first).Decode(&p)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return e, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for parked messages: %w", err)
	}
	e.Sequence, e.ID, e.Type, e.Position = p.Key.Sequence, p.Key.EventID, p.EventType, p.Position
	return e, nil
}
