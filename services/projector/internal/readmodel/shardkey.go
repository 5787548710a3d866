package readmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/doctor"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/reply"
)

// ErrShardKey means that a collection is sharded by another key than _id. Every
// guarded write is an upsert that asks for _id alone: a router does not know
// which shard it is for, and where it takes it, two shards may each insert the
// document.
var ErrShardKey = errors.New("is sharded by another key than _id: move its documents to a collection that is sharded by _id (or is not sharded), or drop it and build it anew")

// sharding is where routers keep what is sharded how; servers of a replica set
// have nothing there.
type sharding struct {
	ID      string   `bson:"_id"`
	Key     bson.Raw `bson:"key"`
	Dropped bool     `bson:"dropped"`
	// Unsplittable is a collection that is not sharded, which servers from 8.0 on may
	// keep there as well, with the key _id.
	Unsplittable bool `bson:"unsplittable"`
}

// shardKeys are the keys of those collections that are sharded by another one
// than _id, as text by name.
func (s *Store) shardKeys(ctx context.Context, collections []string) (map[string]string, error) {
	found, err := s.sharded(ctx, collections)
	if err != nil {
		return nil, err
	}
	others := map[string]string{}
	for _, c := range found {
		elements, err := c.Key.Elements()
		if err != nil {
			return nil, fmt.Errorf("read the shard key of %q: %w", c.ID, err)
		}
		if len(elements) != 1 || elements[0].Key() != "_id" {
			others[strings.TrimPrefix(c.ID, s.db.Name()+".")] = c.Key.String()
		}
	}
	return others, nil
}

// sharded are those of the collections that are sharded, by whatever key.
func (s *Store) sharded(ctx context.Context, collections []string) (found []sharding, err error) {
	names := make(bson.A, len(collections))
	for i, name := range collections {
		names[i] = s.db.Name() + "." + name
	}
	cursor, err := s.db.Client().Database("config").Collection("collections").Find(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: names}}}},
		options.Find().SetProjection(bson.D{{Key: "key", Value: 1}, {Key: "dropped", Value: 1}, {Key: "unsplittable", Value: 1}}))
	if err != nil {
		return nil, fmt.Errorf("read how collections are sharded: %w", err)
	}
	if err := cursor.All(ctx, &found); err != nil {
		return nil, fmt.Errorf("read how collections are sharded: %w", err)
	}
	return slices.DeleteFunc(found, func(c sharding) bool { return c.Dropped || c.Unsplittable || c.Key == nil }), nil
}

// ShardedBy is the shard key of a version's documents, as text; "" where they are not
// sharded, or the role may not look.
func (s *Store) ShardedBy(ctx context.Context, of *projection.Version) (key string, err error) {
	found, err := s.sharded(ctx, []string{of.Collection()})
	if reply.Has(err, unauthorized) {
		return "", nil
	}
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0].Key.String(), nil
}

// CheckShardKeys refuses collections that are sharded by another key than _id,
// with ErrShardKey. It returns false where the role may not look.
func (s *Store) CheckShardKeys(ctx context.Context, collections []string) (bool, error) {
	others, err := s.shardKeys(ctx, s.Needed(collections))
	if reply.Has(err, unauthorized) {
		return false, nil
	}
	for name, key := range others {
		err = errors.Join(err, fmt.Errorf("collection %q with the shard key %s %w", name, key, ErrShardKey))
	}
	return err == nil, err
}

// readShardKeys leaves a server alone that is no router and does not say.
func (s *Store) readShardKeys(ctx context.Context, d *doctor.Database, collections []string) error {
	var err error
	d.ShardKeys, err = s.shardKeys(ctx, s.Needed(collections))
	if reply.Has(err, unauthorized) && !d.Router {
		return nil
	}
	return err
}
