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

// allTime is how long a step that looks at all documents may take.
const allTime = 24 * time.Hour

// namespaceNotFound is the server's code for a collection that is not there.
const namespaceNotFound = 26

// LikeIndexes creates the indexes of one version's documents on those of another, so
// that readers find them there, but for unique ones: while documents are filled one after
// another, a value that has gone from one to another may be in both. The index of tombstones
// is left as it is where the projectors have made it: it may keep them for another time.
func (s *Store) LikeIndexes(ctx context.Context, from, to *projection.Version) error {
	indexes, err := s.indexes(ctx, from, false)
	if err != nil {
		return err
	}
	there, err := s.indexes(ctx, to, false)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(there, ofTombstones) {
		indexes = slices.DeleteFunc(indexes, ofTombstones)
	}
	if len(indexes) == 0 {
		return nil
	}
	return s.createLike(ctx, from, to, indexes...)
}

func ofTombstones(index bson.Raw) bool {
	name, _ := index.Lookup("name").StringValueOK()
	return name == tombstones
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
	ctx, cancel := context.WithTimeout(ctx, allTime)
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

// Options of a collection: validation says which documents it refuses; that and what is
// changeable can be changed, and what is lasting it has from its creation.
var (
	validation = []string{"validator", "validationLevel", "validationAction"}
	changeable = []string{"changeStreamPreAndPostImages", "recordPreImages"}
	lasting    = []string{"capped", "clusteredIndex", "collation", "encryptedFields", "expireAfterSeconds", "timeseries"}
)

// Lasting are options of a version's collection that no other version's would have.
func (s *Store) Lasting(ctx context.Context, of *projection.Version) (names []string, err error) {
	found, err := s.options(ctx, of)
	for _, option := range found {
		if slices.Contains(lasting, option.Key) {
			names = append(names, option.Key)
		}
	}
	return names, err
}

// LikeOptions gives one version's filled documents the validator of another's, and what
// else can be changed. Where more of them are refused by the validator than of the other
// version's, which has them from before it, they stay without, and it returns how many more.
func (s *Store) LikeOptions(ctx context.Context, from, to *projection.Version) (more int64, err error) {
	found, err := s.options(ctx, from)
	if err != nil {
		return 0, err
	}
	if more, err = s.moreInvalid(ctx, from, to, found); err != nil {
		return 0, err
	}
	change := bson.D{{Key: "collMod", Value: to.Collection()}}
	for _, option := range found {
		if slices.Contains(changeable, option.Key) || more == 0 && slices.Contains(validation, option.Key) {
			change = append(change, option)
		}
	}
	if len(change) == 1 {
		return more, nil
	}
	change = append(change, bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}})
	if err := s.db.RunCommand(ctx, change).Err(); err != nil {
		return 0, fmt.Errorf("give %q the options of %q: %w", to.Collection(), from.Collection(), err)
	}
	return more, nil
}

// moreInvalid is how many more documents of one version than of another a validator among
// options refuses.
func (s *Store) moreInvalid(ctx context.Context, from, to *projection.Version, options bson.D) (int64, error) {
	of := map[string]any{}
	for _, option := range options {
		of[option.Key] = option.Value
	}
	if of["validator"] == nil || of["validationLevel"] == "off" || of["validationAction"] == "warn" {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, allTime)
	defer cancel()
	refused := bson.D{{Key: "$nor", Value: bson.A{of["validator"]}}}
	var n [2]int64
	for i, v := range []*projection.Version{from, to} {
		var err error
		if n[i], err = s.db.Collection(v.Collection()).CountDocuments(ctx, refused); err != nil {
			return 0, fmt.Errorf("count what the validator of %q refuses in %q: %w", from.Collection(), v.Collection(), err)
		}
	}
	return max(n[1]-n[0], 0), nil
}

// options are those of a version's collection.
func (s *Store) options(ctx context.Context, of *projection.Version) (all bson.D, err error) {
	found, err := s.db.ListCollectionSpecifications(ctx, bson.D{{Key: "name", Value: of.Collection()}})
	if err == nil && len(found) == 1 && found[0].Options != nil {
		err = bson.Unmarshal(found[0].Options, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("look up the options of %q: %w", of.Collection(), err)
	}
	return all, nil
}
