package readmodel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

var _ delivery.Unhalted = (*Parked)(nil)

// Missing implements delivery.ParkedMessages.
func (s *Parked) Missing(ctx context.Context, aggregate string) (missing int64, err error) {
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
		missing = halt.Kept - there
		if missing > 0 {
			uncounted, err := s.uncounted(ctx, &halt)
			missing -= uncounted
			return err
		}
		return nil
	})
	return max(0, missing), err
}

// Gone is how many messages that were parked under halts are missing, by aggregate.
type Gone map[string]int64

// Messages is how many are missing in all.
func (g Gone) Messages() (n int64) {
	for _, missing := range g {
		n += missing
	}
	return n
}

// First are the first ten of the aggregates.
func (g Gone) First() []string {
	names := slices.Sorted(maps.Keys(g))
	return names[:min(len(names), 10)]
}

// Gone returns which messages are missing that were parked under the group's halts. It
// looks at each halt only where the group lacks some in all.
func (s *Parked) Gone(ctx context.Context) (Gone, error) {
	cursor, err := s.own(projection.HaltedAggregates).Aggregate(ctx, mongo.Pipeline{
		{{Key: "$group", Value: bson.D{{Key: "_id", Value: nil}, {Key: "kept", Value: bson.D{{Key: "$sum", Value: "$kept"}}}}}},
	})
	var sums []struct {
		Kept int64 `bson:"kept"`
	}
	if err == nil {
		err = cursor.All(ctx, &sums)
	}
	if err != nil {
		return nil, fmt.Errorf("sum what is parked under halts: %w", err)
	}
	there, err := s.CountParked(ctx)
	if err != nil || len(sums) == 0 || sums[0].Kept <= there {
		return nil, err
	}
	halted, err := s.halts.HaltedFor(ctx, "")
	if err != nil {
		return nil, err
	}
	gone := Gone{}
	for _, aggregate := range halted {
		missing, err := s.Missing(ctx, aggregate)
		if err != nil {
			return nil, err
		}
		if missing > 0 {
			gone[aggregate] = missing
		}
	}
	return gone, nil
}

// uncounted is how many messages commands of an older release have discarded under a
// halt, by the ledger. Whoever redrives leaves no line there.
func (s *Parked) uncounted(ctx context.Context, halt *haltedAggregate) (int64, error) {
	cursor, err := s.db.Collection(projection.Decisions).Find(ctx, bson.D{
		{Key: "group", Value: s.group},
		{Key: "counted", Value: nil},
		{Key: "command", Value: bson.D{{Key: "$regex", Value: "^parked discard"}}},
		{Key: "about.aggregate", Value: halt.AggregateID},
		{Key: "at", Value: bson.D{{Key: "$gte", Value: halt.HaltedAt}}},
		{Key: "closedAt", Value: bson.D{{Key: "$ne", Value: nil}}},
	}, options.Find().SetProjection(bson.D{{Key: "count", Value: 1}}))
	if err != nil {
		return 0, withOperation(err)
	}
	var lines []Decision
	if err := cursor.All(ctx, &lines); err != nil {
		return 0, withOperation(err)
	}
	n := 0
	for i := range lines {
		n += lines[i].Count
	}
	return int64(n), nil
}

// IsParked implements delivery.ParkedMessages.
func (s *Parked) IsParked(ctx context.Context, e *contract.Event) (bool, error) {
	return s.there(ctx, projection.OfGroup(projection.ParkedMessages, s.group), bson.D{{Key: "_id", Value: parkedKey{e.AggregateID, e.Sequence, e.ID}}})
}

// Unhalted implements delivery.Unhalted. It goes from aggregate to aggregate along
// the keys.
func (s *Parked) Unhalted(ctx context.Context, aggregates ...string) ([]delivery.LostHalt, error) {
	if len(aggregates) > 0 {
		var lost []delivery.LostHalt
		for _, aggregate := range aggregates {
			e, err := s.unhalted(ctx, ofAggregate(aggregate), nil)
			if err != nil {
				return nil, err
			}
			if e != nil && e.ID != "" {
				lost = append(lost, delivery.LostHalt{Event: *e})
			}
		}
		return s.withDeleted(ctx, lost, aggregates)
	}
	halts, err := s.halts.List(ctx, 0)
	if err != nil {
		return nil, err
	}
	var lost []delivery.LostHalt
	after := bson.D{}
	for {
		e, err := s.unhalted(ctx, after, halts)
		if err != nil {
			return nil, err
		}
		if e == nil {
			break
		}
		if e.ID != "" {
			lost = append(lost, delivery.LostHalt{Event: *e})
		}
		after = bson.D{{Key: "_id", Value: bson.D{{Key: "$gt", Value: bson.D{{Key: "aggregateId", Value: e.AggregateID}, {Key: "sequence", Value: bson.MaxKey{}}}}}}}
	}
	noted, err := s.halts.notedHalts(ctx)
	if err != nil {
		return nil, err
	}
	noted = slices.DeleteFunc(noted, func(aggregate string) bool { return halts[aggregate] != "" })
	return s.withDeleted(ctx, lost, noted)
}

// withDeleted adds those of the aggregates whose halts were deleted with all that was
// parked under them.
func (s *Parked) withDeleted(ctx context.Context, lost []delivery.LostHalt, aggregates []string) ([]delivery.LostHalt, error) {
	for _, aggregate := range aggregates {
		found, err := s.deleted(ctx, aggregate)
		if err != nil {
			return nil, err
		}
		if found != nil {
			lost = append(lost, *found)
		}
	}
	return lost, nil
}

// unhalted is the first parked message that is found, with no more than its
// aggregate where that is halted, or was before; nil where there is none.
func (s *Parked) unhalted(ctx context.Context, filter bson.D, before map[string]delivery.HaltID) (*contract.Event, error) {
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
	halt, err := s.halts.Halted(ctx, e.AggregateID)
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
