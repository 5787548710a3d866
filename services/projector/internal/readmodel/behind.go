package readmodel

import (
	"context"
	"fmt"
	"maps"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
)

// Behind are aggregates whose events one version of a projection has and
// another one has not yet, each with the sequence that it has to reach.
type Behind map[string]contract.Sequence

// lookEvery is how often those behind are looked at again.
const lookEvery = 100 * time.Millisecond

// Behind compares, aggregate by aggregate, how far two versions are, and returns
// those in which v is behind live, up to limit. Where the last event of an
// aggregate in live is of a type that v does not follow, v has nothing to reach.
func (s *Store) Behind(ctx context.Context, v, live *projection.Version, limit int) (Behind, error) {
	from, pipeline := live.Collection(), s.behindOwn(v)
	if v.Keyed {
		from, pipeline = projection.Positions, s.behindKeyed(v, live)
	}
	pipeline = append(pipeline, bson.D{{Key: "$limit", Value: limit}})
	cursor, err := s.db.Collection(from).Aggregate(ctx, pipeline, options.Aggregate().SetAllowDiskUse(true))
	if err != nil {
		return nil, fmt.Errorf("compare %q with %q: %w", v.Collection(), live.Collection(), err)
	}
	var found []struct {
		Aggregate string            `bson:"aggregate"`
		Sequence  contract.Sequence `bson:"sequence"`
	}
	if err := cursor.All(ctx, &found); err != nil {
		return nil, fmt.Errorf("compare %q with %q: %w", v.Collection(), live.Collection(), err)
	}
	behind := Behind{}
	for _, f := range found {
		behind[f.Aggregate] = f.Sequence
	}
	return behind, nil
}

// behindOwn compares documents that are the aggregates' own. A tombstone asks
// for nothing where there is no document: a copy does not show what was deleted.
func (s *Store) behindOwn(v *projection.Version) mongo.Pipeline {
	there := bson.D{{Key: "$first", Value: "$there._relay.sequence"}}
	return mongo.Pipeline{
		{{Key: "$match", Value: bson.D{{Key: "_relay.eventType", Value: bson.D{{Key: "$in", Value: v.Types}}}}}},
		{{Key: "$lookup", Value: bson.D{{Key: "from", Value: v.Collection()}, {Key: "localField", Value: "_id"}, {Key: "foreignField", Value: "_id"}, {Key: "as", Value: "there"}}}},
		{{Key: "$match", Value: bson.D{
			{Key: "$expr", Value: bson.D{{Key: "$lt", Value: bson.A{bson.D{{Key: "$ifNull", Value: bson.A{there, ""}}}, "$_relay.sequence"}}}},
			{Key: "$or", Value: bson.A{bson.D{{Key: "there", Value: bson.D{{Key: "$ne", Value: bson.A{}}}}}, bson.D{{Key: "_relay.deletedAt", Value: nil}}}},
		}}},
		{{Key: "$project", Value: bson.D{{Key: "_id", Value: 0}, {Key: "aggregate", Value: "$_id"}, {Key: "sequence", Value: "$_relay.sequence"}}}},
	}
}

// behindKeyed compares the ledger's entries of two versions.
func (s *Store) behindKeyed(v, live *projection.Version) mongo.Pipeline {
	there := bson.D{{Key: "$first", Value: "$there.sequence"}}
	key := bson.D{{Key: "projection", Value: bson.D{{Key: "$literal", Value: v.Account()}}}, {Key: "aggregateId", Value: "$_id.aggregateId"}}
	return mongo.Pipeline{
		{{Key: "$match", Value: bson.D{{Key: "_id.projection", Value: live.Account()}, {Key: "eventType", Value: bson.D{{Key: "$in", Value: v.Types}}}}}},
		{{Key: "$set", Value: bson.D{{Key: "other", Value: key}}}},
		{{Key: "$lookup", Value: bson.D{{Key: "from", Value: projection.Positions}, {Key: "localField", Value: "other"}, {Key: "foreignField", Value: "_id"}, {Key: "as", Value: "there"}}}},
		{{Key: "$match", Value: bson.D{{Key: "$expr", Value: bson.D{{Key: "$lt", Value: bson.A{bson.D{{Key: "$ifNull", Value: bson.A{there, ""}}}, "$sequence"}}}}}}},
		{{Key: "$project", Value: bson.D{{Key: "_id", Value: 0}, {Key: "aggregate", Value: "$_id.aggregateId"}, {Key: "sequence", Value: 1}}}},
	}
}

// Await looks until v has reached what it was behind in, for about as long as
// patience says, and returns what is left.
func (s *Store) Await(ctx context.Context, v *projection.Version, behind Behind, patience time.Duration) (Behind, error) {
	left := maps.Clone(behind)
	end := time.Now().Add(patience)
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		for aggregate, sequence := range left {
			reached, err := s.reached(ctx, v, aggregate, sequence)
			if err != nil {
				return left, err
			}
			if reached {
				delete(left, aggregate)
			}
		}
		if len(left) == 0 || time.Now().After(end) {
			return left, nil
		}
		select {
		case <-ctx.Done():
			return left, context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

func (s *Store) reached(ctx context.Context, v *projection.Version, aggregate string, sequence contract.Sequence) (bool, error) {
	if v.Keyed {
		return s.ReachedKeyed(ctx, v.Account(), aggregate, sequence)
	}
	return s.Reached(ctx, v.Collection(), aggregate, sequence)
}
