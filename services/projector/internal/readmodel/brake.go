package readmodel

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

var _ delivery.HaltTimes = (*Halts)(nil)

// counting finds the halts that count for the brake.
var counting = bson.D{{Key: "uncounted", Value: bson.D{{Key: "$ne", Value: true}}}}

// LatestHalts implements delivery.HaltTimes.
func (s *Halts) LatestHalts(ctx context.Context, limit int) ([]time.Time, error) {
	cursor, err := s.own(projection.HaltedAggregates).Find(ctx, counting, options.Find().SetLimit(int64(limit)).
		SetSort(bson.D{{Key: "haltedAt", Value: -1}}).SetProjection(bson.D{{Key: "haltedAt", Value: 1}}))
	if err != nil {
		return nil, fmt.Errorf("count halted aggregates: %w", err)
	}
	var halted []haltedAggregate
	if err := cursor.All(ctx, &halted); err != nil {
		return nil, fmt.Errorf("count halted aggregates: %w", err)
	}
	times, err := s.skipped.latest(ctx, limit)
	for i := range halted {
		times = append(times, halted[i].HaltedAt)
	}
	return byTime(limit, times...), err
}

// CountingHalts is how many halted aggregates count for the brake.
func (s *Halts) CountingHalts(ctx context.Context) (int64, error) {
	n, err := s.own(projection.HaltedAggregates).CountDocuments(ctx, counting)
	if err != nil {
		return 0, fmt.Errorf("count halted aggregates: %w", err)
	}
	return n, nil
}

// EachCounting calls each for the halted aggregates that count for the brake.
func (s *Halts) EachCounting(ctx context.Context, each func(*HaltedAggregate)) error {
	cursor, err := s.own(projection.HaltedAggregates).Find(ctx, counting, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
	if err != nil {
		return fmt.Errorf("list halted aggregates: %w", err)
	}
	defer func() { _ = cursor.Close(context.WithoutCancel(ctx)) }()
	for cursor.Next(ctx) {
		var h HaltedAggregate
		if err := cursor.Decode(&h); err != nil {
			return fmt.Errorf("read a halted aggregate: %w", err)
		}
		each(&h)
	}
	if err := cursor.Err(); err != nil {
		return fmt.Errorf("list halted aggregates: %w", err)
	}
	return nil
}

// AcceptHalts has the halts that there are count no more, so that as many may
// follow, and tells how many they are.
func (s *Halts) AcceptHalts(ctx context.Context) (int64, error) {
	result, err := s.own(projection.HaltedAggregates).UpdateMany(ctx, counting, bson.D{{Key: "$set", Value: bson.D{{Key: "uncounted", Value: true}}}})
	if err != nil {
		return 0, fmt.Errorf("accept halted aggregates: %w", err)
	}
	return result.ModifiedCount, nil
}
