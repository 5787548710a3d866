package readmodel

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/reply"
)

// indexTime is how long an index of many documents may take to be built.
const indexTime = 24 * time.Hour

// namespaceNotFound is the server's code for a collection that is not there.
const namespaceNotFound = 26

// LikeIndexes creates the indexes of one version's documents on those of another, so
// that readers find them there, but for unique ones: while documents are filled one after
// another, a value that has gone from one to another may be in both.
func (s *Store) LikeIndexes(ctx context.Context, from, to *projection.Version) error {
	indexes, err := s.indexes(ctx, from, false)
	if err != nil || len(indexes) == 0 {
		return err
	}
	return s.createLike(ctx, from, to, indexes...)
}

// LikeUnique creates the unique indexes of one version's documents on those of another,
// which are filled. It returns the names of those that there cannot be, since documents
// have the same values.
func (s *Store) LikeUnique(ctx context.Context, from, to *projection.Version) (refused []string, err error) {
	indexes, err := s.indexes(ctx, from, true)
	if err != nil {
		return nil, err
	}
	for _, index := range indexes {
		err := s.createLike(ctx, from, to, index)
		switch {
		case mongo.IsDuplicateKeyError(err):
			refused = append(refused, index.Lookup("name").StringValue())
		case err != nil:
			return nil, err
		}
	}
	return refused, nil
}

// indexes are those of a version's documents, the unique ones or all others.
func (s *Store) indexes(ctx context.Context, of *projection.Version, unique bool) ([]bson.Raw, error) {
	cursor, err := s.db.Collection(of.Collection()).Indexes().List(ctx)
	var all []bson.Raw
	if err == nil {
		err = cursor.All(ctx, &all)
	}
	if err != nil && !reply.Has(err, namespaceNotFound) {
		return nil, fmt.Errorf("list the indexes of %q: %w", of.Collection(), err)
	}
	return slices.DeleteFunc(all, func(index bson.Raw) bool {
		is, _ := index.Lookup("unique").BooleanOK()
		return is != unique
	}), nil
}

func (s *Store) createLike(ctx context.Context, from, to *projection.Version, indexes ...bson.Raw) error {
	ctx, cancel := context.WithTimeout(ctx, indexTime)
	defer cancel()
	err := s.db.RunCommand(ctx, bson.D{
		{Key: "createIndexes", Value: to.Collection()},
		{Key: "indexes", Value: indexes},
		{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}},
	}).Err()
	if err != nil {
		return fmt.Errorf("give %q the indexes of %q: %w", to.Collection(), from.Collection(), err)
	}
	return nil
}
