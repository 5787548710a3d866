package readmodel

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/projector/internal/projection"
)

// Progress is how far a projection is, as one process or, summed up, a group of them
// tells. It is in the beat of each process.
type Progress struct {
	Projection string `bson:"projection" json:"projection,omitempty"`
	// PositionAt is when the latest change was made that was dealt with; absent before
	// the first.
	PositionAt *time.Time `bson:"positionAt,omitempty" json:"position_at,omitempty"`
	// LagSeconds is absent until known, and while the projection is filled.
	LagSeconds *float64 `bson:"lagSeconds,omitempty" json:"lag_seconds,omitempty"`
	// Applied counts events whose writes were stored since the process began.
	Applied int64 `bson:"applied" json:"applied"`
	// AppliedPerSecond is the rate of the last ten seconds.
	AppliedPerSecond float64 `bson:"appliedPerSecond" json:"applied_per_second"`
	// Halts counts aggregates that the process has halted because of the projection.
	Halts int64 `bson:"halts" json:"halts"`
	// Skipped counts events that the projection has skipped.
	Skipped int64 `bson:"skipped" json:"skipped"`
	// HaltedAggregates are those of the group that are halted because of it; absent until
	// known.
	HaltedAggregates *int64 `bson:"-" json:"halted_aggregates,omitempty"`
}

// Summed is the progress of projections as several processes tell it, sorted by name: what
// was applied together, the latest position, and the lag of the one that is most behind.
func Summed(members []Member) []Progress {
	sums := []Progress{}
	for i := range members {
		for _, of := range members[i].Progress {
			if !members[i].Lives {
				continue
			}
			at := slices.IndexFunc(sums, func(p Progress) bool { return p.Projection == of.Projection })
			if at < 0 {
				at, sums = len(sums), append(sums, Progress{Projection: of.Projection})
			}
			sum := &sums[at]
			sum.Applied += of.Applied
			sum.AppliedPerSecond += of.AppliedPerSecond
			sum.Halts += of.Halts
			sum.Skipped += of.Skipped
			if of.PositionAt != nil && (sum.PositionAt == nil || of.PositionAt.After(*sum.PositionAt)) {
				sum.PositionAt = of.PositionAt
			}
			if of.LagSeconds != nil && (sum.LagSeconds == nil || *of.LagSeconds > *sum.LagSeconds) {
				sum.LagSeconds = of.LagSeconds
			}
		}
	}
	slices.SortFunc(sums, func(a, b Progress) int { return cmp.Compare(a.Projection, b.Projection) })
	return sums
}

// CountBy counts the aggregates that are halted because of a projection, for each.
func (s *Halts) CountBy(ctx context.Context) (map[string]int64, error) {
	cursor, err := s.own(projection.HaltedAggregates).Aggregate(ctx, mongo.Pipeline{
		{{Key: "$match", Value: bson.D{{Key: "projection", Value: bson.D{{Key: "$gt", Value: ""}}}}}},
		{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$projection"}, {Key: "n", Value: bson.D{{Key: "$sum", Value: 1}}}}}},
	})
	var counted []struct {
		Projection string `bson:"_id"`
		N          int64  `bson:"n"`
	}
	if err == nil {
		err = cursor.All(ctx, &counted)
	}
	if err != nil {
		return nil, fmt.Errorf("count halted aggregates by projection: %w", err)
	}
	all := make(map[string]int64, len(counted))
	for _, c := range counted {
		all[c.Projection] = c.N
	}
	return all, nil
}
