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

// AggregateVersions are the versions that aggregates have reached, in applied_positions.
type AggregateVersions struct {
	*database
	halts *Halts
	// marked are those of Config.
	marked []string
}

var _ delivery.Versions = (*AggregateVersions)(nil)

// versions is the key of an aggregate's version in the ledger: that of no
// projection, since none is without a name.
func versions(aggregate string) positionKey { return positionKey{AggregateID: aggregate} }

// LastVersion implements delivery.Versions.
func (s *AggregateVersions) LastVersion(ctx context.Context, aggregate string) (contract.Version, error) {
	var stored struct {
		Version   *int64    `bson:"version"`
		UpdatedAt time.Time `bson:"updatedAt"`
	}
	err := s.own(projection.Positions).FindOne(ctx, bson.D{{Key: "_id", Value: versions(aggregate)}}).Decode(&stored)
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return s.shownVersion(ctx, aggregate)
	case err == nil && stored.Version == nil:
		return contract.Version{}, nil
	case err != nil:
		return contract.Version{}, fmt.Errorf("read a version in %q: %w", projection.Positions, err)
	}
	doubtful, err := s.doubtful(ctx, aggregate, stored.UpdatedAt)
	if err != nil || doubtful {
		return contract.Version{}, err
	}
	return contract.VersionOf(*stored.Version), nil
}

// clocksApart is how far the clocks of projectors and server may be apart.
const clocksApart = time.Minute

// shownVersion is the version of an aggregate that has no note, by its own documents:
// one that was written since versions are noted tells that the note is lost. It shows no
// event that its projection passed by.
func (s *AggregateVersions) shownVersion(ctx context.Context, aggregate string) (shown contract.Version, err error) {
	f, err := s.feeding(ctx)
	if err != nil || f == nil || f.NotedSince.IsZero() {
		return contract.Version{}, err
	}
	since := f.NotedSince
	if f.UnnotedAt.After(since) {
		since = f.UnnotedAt
	}
	for _, collection := range s.marked {
		var stored struct {
			Relay struct {
				Version *int64 `bson:"aggregateVersion"`
			} `bson:"_relay"`
		}
		err := s.db.Collection(collection).FindOne(ctx, bson.D{
			{Key: "_id", Value: aggregate},
			{Key: ofAggregates, Value: nil},
			{Key: bookkeeping + ".updatedAt", Value: bson.D{{Key: "$gt", Value: since.Add(clocksApart)}}},
		}, options.FindOne().SetProjection(bson.D{{Key: bookkeeping + ".aggregateVersion", Value: 1}})).Decode(&stored)
		if errors.Is(err, mongo.ErrNoDocuments) {
			continue
		}
		if err != nil {
			return contract.Version{}, fmt.Errorf("read a version in %q: %w", collection, err)
		}
		if v := stored.Relay.Version; v != nil && (!shown.Known || *v > shown.Number) {
			shown = contract.VersionOf(*v)
		}
	}
	return shown, nil
}

// doubtful tells whether later versions may have been applied than the one that was
// noted at a time: while a projector lived that notes none, and the aggregate was
// not halted. What is halted is applied by a redrive alone, and stops there.
func (s *AggregateVersions) doubtful(ctx context.Context, aggregate string, noted time.Time) (bool, error) {
	f, err := s.feeding(ctx)
	if err != nil || f == nil || noted.After(f.UnnotedAt) {
		return false, err
	}
	halt, err := s.halts.Halted(ctx, aggregate)
	return halt == "", err
}

// AdvanceVersion implements delivery.Versions.
func (s *AggregateVersions) AdvanceVersion(ctx context.Context, aggregate string, version int64) error {
	return s.setVersion(ctx, aggregate, bson.D{
		{Key: "$max", Value: bson.D{{Key: "version", Value: version}}},
		{Key: "$currentDate", Value: bson.D{{Key: "updatedAt", Value: true}}},
	})
}

// ForgetVersion implements delivery.Versions.
func (s *AggregateVersions) ForgetVersion(ctx context.Context, aggregate string) error {
	return s.setVersion(ctx, aggregate, bson.D{
		{Key: "$unset", Value: bson.D{{Key: "version", Value: ""}}},
		{Key: "$currentDate", Value: bson.D{{Key: "updatedAt", Value: true}}},
	})
}

func (s *AggregateVersions) setVersion(ctx context.Context, aggregate string, update bson.D) error {
	_, err := s.own(projection.Positions).UpdateOne(ctx, bson.D{{Key: "_id", Value: versions(aggregate)}}, update,
		options.UpdateOne().SetUpsert(true))
	if err != nil {
		return fmt.Errorf("write a version to %q: %w", projection.Positions, err)
	}
	return nil
}
