package readmodel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// stopNote is a document of applied_positions: an event stops the group's projectors,
// until an operator resumes.
type stopNote struct {
	Key         stopKey           `bson:"_id"`
	AggregateID string            `bson:"aggregateId"`
	Sequence    contract.Sequence `bson:"sequence"`
	EventID     string            `bson:"eventId"`
	EventType   string            `bson:"eventType"`
	Reason      string            `bson:"reason"`
	Projection  string            `bson:"projection,omitempty"`
	At          time.Time         `bson:"at"`
}

type stopKey struct {
	Note string `bson:"note"`
}

var stopped = bson.D{{Key: "_id", Value: stopKey{"stop"}}}

// Stop implements delivery.HaltTimes.
func (s *Halts) Stop(ctx context.Context, stop delivery.Stop) error {
	e := &stop.Event
	_, fields, err := split(stopNote{AggregateID: e.AggregateID, Sequence: e.Sequence, EventID: e.ID, EventType: e.Type, Reason: stop.Reason, Projection: stop.Projection, At: stop.At})
	if err != nil {
		return err
	}
	_, err = s.own(projection.Positions).UpdateOne(ctx, stopped, bson.D{{Key: "$setOnInsert", Value: fields}}, options.UpdateOne().SetUpsert(true))
	if err != nil && !mongo.IsDuplicateKeyError(err) { // another projector has noted one at the same moment
		return fmt.Errorf("note in %q that event %q stops the projectors: %w", projection.Positions, e.ID, err)
	}
	return nil
}

// Stopped implements delivery.HaltTimes.
func (s *Halts) Stopped(ctx context.Context) (*delivery.Stop, error) {
	var n stopNote
	err := s.own(projection.Positions).FindOne(ctx, stopped).Decode(&n)
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look up whether the projectors are stopped: %w", err)
	}
	return &delivery.Stop{
		Event:  contract.Event{ID: n.EventID, Type: n.EventType, AggregateID: n.AggregateID, Sequence: n.Sequence},
		Reason: n.Reason, Projection: n.Projection, At: n.At,
	}, nil
}

// Resume ends a stop, where there is one.
func (s *Halts) Resume(ctx context.Context) error {
	if _, err := s.own(projection.Positions).DeleteOne(ctx, stopped); err != nil {
		return fmt.Errorf("remove from %q what stops the projectors: %w", projection.Positions, err)
	}
	return nil
}
