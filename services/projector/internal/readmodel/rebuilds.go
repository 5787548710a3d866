package readmodel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/reply"
	"changerelay/services/projector/internal/rebuild"
)

var _ rebuild.Positions = (*Writes)(nil)

// ErrRevised means that the record of a rebuild was changed by somebody else.
var ErrRevised = errors.New("the rebuild was changed at the same time")

// rebuildKey is the key of a rebuild's record in collection_owners, beside collections
// and feeds.
func rebuildKey(r *rebuild.Record) string {
	return fmt.Sprintf("$rebuild:%s:%d", r.Projection, r.Declared)
}

// Rebuilds are the records of rebuilds, as a majority has them.
func (s *Store) Rebuilds(ctx context.Context) (rebuild.Records, error) {
	cursor, err := s.db.Collection(projection.Owners).Find(ctx,
		bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: "$rebuild:"}, {Key: "$lt", Value: "$rebuild;"}}}},
		options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
	var records rebuild.Records
	if err == nil {
		err = cursor.All(ctx, &records)
	}
	if err != nil {
		return nil, fmt.Errorf("read rebuilds in %q: %w", projection.Owners, err)
	}
	return records, nil
}

// Revise replaces the record of a rebuild with one of the next revision; ErrRevised
// where the stored one is of another than the one before that.
func (s *Store) Revise(ctx context.Context, r rebuild.Record) error {
	result, err := s.db.Collection(projection.Owners).ReplaceOne(ctx,
		bson.D{{Key: "_id", Value: rebuildKey(&r)}, {Key: "revision", Value: r.Revision - 1}}, r,
		options.Replace().SetUpsert(r.Revision == 1))
	if mongo.IsDuplicateKeyError(err) {
		return ErrRevised
	}
	if err != nil {
		return fmt.Errorf("note a rebuild in %q: %w", projection.Owners, err)
	}
	if result.MatchedCount+result.UpsertedCount == 0 {
		return ErrRevised
	}
	return nil
}

// Switched notes when readers were switched to a rebuild's next version.
func (s *Store) Switched(ctx context.Context, r *rebuild.Record, at time.Time) error {
	return s.annotate(ctx, r, bson.D{{Key: "$set", Value: bson.D{{Key: "switchedAt", Value: at}}}})
}

// Dropped takes a version from those of a record that are to be dropped.
func (s *Store) Dropped(ctx context.Context, r *rebuild.Record, version int) error {
	return s.annotate(ctx, r, bson.D{{Key: "$pull", Value: bson.D{{Key: "retired", Value: version}}}})
}

// annotate changes of a record what no projector works by.
func (s *Store) annotate(ctx context.Context, r *rebuild.Record, change bson.D) error {
	_, err := s.db.Collection(projection.Owners).UpdateOne(ctx, bson.D{{Key: "_id", Value: rebuildKey(r)}, {Key: "revision", Value: r.Revision}}, change)
	if err != nil {
		return fmt.Errorf("note a rebuild in %q: %w", projection.Owners, err)
	}
	return nil
}

// Elsewhere are the instances of the group's processes that live, as far as they have
// said so within deadAfter, and work by other records of rebuilds; and how many there
// are in all.
func (s *Store) Elsewhere(ctx context.Context, works string) (others []string, all int, err error) {
	live := mongo.Pipeline{
		{{Key: "$match", Value: bson.D{
			{Key: "instance", Value: bson.D{{Key: "$exists", Value: true}}},
			{Key: "stoppedAt", Value: nil},
			{Key: "diedAt", Value: nil},
			{Key: "$expr", Value: bson.D{{Key: "$gt", Value: bson.A{"$heartbeatAt", bson.D{{Key: "$subtract", Value: bson.A{"$$NOW", deadAfter.Milliseconds()}}}}}}},
		}}},
		{{Key: "$sort", Value: bson.D{{Key: "instance", Value: 1}}}},
	}
	cursor, err := s.own(projection.Processes).Aggregate(ctx, live)
	var found []struct {
		Instance string  `bson:"instance"`
		Works    *string `bson:"works"` // nil of an older release
	}
	if err == nil {
		err = cursor.All(ctx, &found)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("look for projectors in %q: %w", projection.Processes, err)
	}
	for _, p := range found {
		if p.Works == nil || *p.Works != works {
			others = append(others, p.Instance)
		}
	}
	return others, len(found), nil
}

// LikeIndexes creates the indexes of one version's documents on those of another, so
// that readers find them there.
func (s *Store) LikeIndexes(ctx context.Context, from, to *projection.Version) error {
	cursor, err := s.db.Collection(from.Collection()).Indexes().List(ctx)
	var indexes bson.A
	if err == nil {
		for cursor.Next(ctx) {
			var index bson.D
			if err = cursor.Decode(&index); err != nil {
				break
			}
			indexes = append(indexes, index)
		}
		err = errors.Join(err, cursor.Err(), cursor.Close(ctx))
	}
	if reply.Has(err, namespaceNotFound) || err == nil && len(indexes) == 0 {
		return nil
	}
	if err == nil {
		err = s.db.RunCommand(ctx, bson.D{
			{Key: "createIndexes", Value: to.Collection()},
			{Key: "indexes", Value: indexes},
			{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}},
		}).Err()
	}
	if err != nil {
		return fmt.Errorf("give %q the indexes of %q: %w", to.Collection(), from.Collection(), err)
	}
	return nil
}

// namespaceNotFound is the server's code for a collection that is not there.
const namespaceNotFound = 26

// Drop removes what there is of a version that nobody writes: documents, positions and
// what is noted of both.
func (s *Store) Drop(ctx context.Context, v *projection.Version) error {
	if err := s.db.Collection(v.Collection()).Drop(ctx); err != nil {
		return fmt.Errorf("drop %q: %w", v.Collection(), err)
	}
	if _, err := s.db.Collection(projection.Positions).DeleteMany(ctx, positionsOf(v.Account())); err != nil {
		return fmt.Errorf("remove the positions of %q: %w", v.Account(), err)
	}
	keys := bson.A{v.Collection(), emptiedKey(v.Collection()), accountKey(v.Account()), shapeKey(v.Account(), v.Collection())}
	if _, err := s.db.Collection(projection.Owners).DeleteMany(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: keys}}}}); err != nil {
		return fmt.Errorf("remove what is noted of %q: %w", v.Collection(), err)
	}
	return nil
}
