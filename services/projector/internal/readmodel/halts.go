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

// Halts are the halts of aggregates: in halted_aggregates, beside that as notes in
// applied_positions, and as marks of the read documents.
type Halts struct {
	*database
	// marked are those of Config.
	marked  []string
	skipped *Skipped
}

var _ delivery.HaltedAggregates = (*Halts)(nil)

// haltedAggregate is a document of halted_aggregates; its key is the aggregate.
type haltedAggregate struct {
	AggregateID string `bson:"_id" json:"aggregate"`
	Reason      string `bson:"reason" json:"reason"`
	// Projection is the one that is to blame, if one is.
	Projection string            `bson:"projection,omitempty" json:"projection,omitempty"`
	Sequence   contract.Sequence `bson:"sequence" json:"sequence"`
	Position   contract.Position `bson:"position" json:"position"`
	EventID    string            `bson:"eventId" json:"event_id"`
	EventType  string            `bson:"eventType" json:"event_type"`
	HaltedAt   time.Time         `bson:"haltedAt" json:"halted_at"`
	// Halt tells this halt from others of the aggregate.
	Halt delivery.HaltID `bson:"halt" json:"-"`
	// Parked is how many messages were parked under the halt, redriven ones among them.
	Parked int64 `bson:"parked" json:"parked"`
	// Kept is how many of them nobody has taken away; too low where an older release
	// has parked some.
	Kept int64 `bson:"kept" json:"-"`
	// Taken is how far messages were taken away.
	Taken contract.Sequence `bson:"taken" json:"-"`
}

// id is the halt's own; one that an older projector stored goes by its time.
func (h *haltedAggregate) id() delivery.HaltID {
	if h.Halt == "" {
		return delivery.HaltID(h.HaltedAt.UTC().Format(time.RFC3339Nano))
	}
	return h.Halt
}

// haltFields are those that tell which halt it is.
var haltFields = bson.D{{Key: "halt", Value: 1}, {Key: "haltedAt", Value: 1}}

// List implements delivery.HaltedAggregates.
func (s *Halts) List(ctx context.Context, limit int) (map[string]delivery.HaltID, error) {
	halted, err := s.halted(ctx, limit, haltFields)
	if err != nil {
		return nil, err
	}
	halts := make(map[string]delivery.HaltID, len(halted))
	for i := range halted {
		halts[halted[i].AggregateID] = halted[i].id()
	}
	return halts, nil
}

func (s *Halts) halted(ctx context.Context, limit int, fields bson.D) ([]haltedAggregate, error) {
	cursor, err := s.own(projection.HaltedAggregates).Find(ctx, bson.D{},
		options.Find().SetLimit(int64(limit)).SetProjection(fields).SetSort(bson.D{{Key: "_id", Value: 1}}))
	if err != nil {
		return nil, fmt.Errorf("list halted aggregates: %w", err)
	}
	var halted []haltedAggregate
	if err := cursor.All(ctx, &halted); err != nil {
		return nil, fmt.Errorf("list halted aggregates: %w", err)
	}
	return halted, nil
}

// Halted implements delivery.HaltedAggregates.
func (s *Halts) Halted(ctx context.Context, aggregate string) (delivery.HaltID, error) {
	var halted haltedAggregate
	err := s.own(projection.HaltedAggregates).FindOne(ctx, bson.D{{Key: "_id", Value: aggregate}},
		options.FindOne().SetProjection(haltFields)).Decode(&halted)
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("look up halted aggregate %q: %w", aggregate, err)
	}
	return halted.id(), nil
}

// uncount takes one from the messages that are kept under an aggregate's halt, where
// it is halted: the one at a sequence was taken away, or, with "", none was added.
func (s *Halts) uncount(ctx context.Context, aggregate string, taken contract.Sequence) error {
	_, err := s.own(projection.HaltedAggregates).UpdateOne(ctx, bson.D{{Key: "_id", Value: aggregate}}, bson.D{
		{Key: "$inc", Value: bson.D{{Key: "kept", Value: int64(-1)}}},
		{Key: "$max", Value: bson.D{{Key: "taken", Value: taken}}},
	})
	if err != nil {
		return fmt.Errorf("write to %q: %w", projection.HaltedAggregates, err)
	}
	return nil
}
