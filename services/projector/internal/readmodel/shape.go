package readmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/projection"
)

// ErrReshaped means that a projection says another key than the one that its documents
// have: what it has applied stands under the old key, and what comes would stand under
// the new one, in one collection.
var ErrReshaped = errors.New("a projection has another key than its documents")

// shape is what keys a projection gives its documents. It is a document of
// collection_owners, written at the projection's first start.
type shape struct {
	Key        string `bson:"_id"`
	Projection string `bson:"of"`
	Collection string `bson:"in"`
	// Keys is the key's expression; empty where each aggregate has a document of its own.
	Keys string `bson:"keys"`
}

// said is a key, for people.
func said(keys string) string {
	if keys == "" {
		return "without a key, a document for each aggregate"
	}
	return fmt.Sprintf("with the key %s", keys)
}

// shapePrefix begins the keys of all shapes, which are before shapeEnd.
const shapePrefix, shapeEnd = "$shape:", "$shape;"

// shapeKey is the key of the note about a projection's documents in a collection.
func shapeKey(name, collection string) string { return shapePrefix + collection + "/" + name }

// shapes are those of the store's projections.
func (s *Store) shapes() (all []shape) {
	for i := range s.parts {
		part := &s.parts[i]
		for _, collection := range part.Collections {
			all = append(all, shape{shapeKey(part.Name, collection), part.Name, collection, part.Key})
		}
	}
	return all
}

// claimShapes notes what is not noted, and is CheckShapes.
func (s *Store) claimShapes(ctx context.Context) error {
	for _, own := range s.shapes() {
		_, err := s.db.Collection(projection.Owners).UpdateOne(ctx, bson.D{{Key: "_id", Value: own.Key}}, bson.D{{Key: "$setOnInsert", Value: bson.D{
			{Key: "of", Value: own.Projection}, {Key: "in", Value: own.Collection}, {Key: "keys", Value: own.Keys},
		}}}, options.UpdateOne().SetUpsert(true))
		if err != nil && !mongo.IsDuplicateKeyError(err) {
			return fmt.Errorf("note the key of projection %q in %q: %w", own.Projection, projection.Owners, err)
		}
	}
	return s.CheckShapes(ctx)
}

// CheckShapes is ErrReshaped, with what to do, where a projection of the store's says
// another key than the one that is noted.
func (s *Store) CheckShapes(ctx context.Context) error {
	here := s.shapes()
	keys := bson.A{}
	for _, own := range here {
		keys = append(keys, own.Key)
	}
	cursor, err := s.db.Collection(projection.Owners).Find(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: keys}}}}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
	var noted []shape
	if err == nil {
		err = cursor.All(ctx, &noted)
	}
	if err != nil {
		return fmt.Errorf("read the keys of projections in %q: %w", projection.Owners, err)
	}
	var problems []string
	for _, was := range noted {
		own := here[slices.IndexFunc(here, func(own shape) bool { return own.Key == was.Key })]
		if own.Keys != was.Keys {
			problems = append(problems, fmt.Sprintf("the documents of projection %q in %q were made %s, and PROJECTIONS declares it %s", was.Projection, was.Collection, said(was.Keys), said(own.Keys)))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf(`%w: %s. Declare it as another version, or under another name and collection, or give it its key back: docs/projections.md, "Documents of another key"`,
		ErrReshaped, strings.Join(problems, "; "))
}
