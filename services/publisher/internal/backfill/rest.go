package backfill

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// byID is the order of the rest. An _id is never of a type without a place.
var byID = []string{"_id"}

// restKey is the field of a key of the rest. A key in the order has numbers.
const restKey = "rest"

// rest is how far the documents are read that have no place in the order.
type rest struct {
	begun bool
	// behind is the _id behind which they are looked for; zero is from the first.
	behind bson.RawValue
}

// restBehind is how far the rest is read where the last document has that key.
func restBehind(key []byte) rest {
	id, err := bson.Raw(key).LookupErr(restKey)
	return rest{begun: key != nil && err == nil, behind: id}
}

// withPlace are conditions that documents with a place in an order fulfil: on
// the way to each of its fields is nothing of a type that has none.
func withPlace(order []string) bson.A {
	var all bson.A
	for _, path := range ways(order) {
		all = append(all, bson.D{{Key: path, Value: bson.D{{Key: "$not", Value: ofNoPlace()}}}})
	}
	return all
}

// withoutPlace is fulfilled by all other documents.
func withoutPlace(order []string) bson.D {
	either := bson.A{}
	for _, path := range ways(order) {
		either = append(either, bson.D{{Key: path, Value: ofNoPlace()}})
	}
	return bson.D{{Key: "$or", Value: either}}
}

func ofNoPlace() bson.D {
	return bson.D{{Key: "$type", Value: bson.A{"undefined", "array", "regex"}}}
}

// ways are the paths to the fields of an order, and all on the way to them. It has
// none for _id alone, which every document has a place by.
func ways(order []string) []string {
	var all []string
	for _, field := range order {
		for i := range len(field) {
			if field[i] == '.' {
				all = append(all, field[:i])
			}
		}
		if field != "_id" {
			all = append(all, field)
		}
	}
	return all
}

// findRest returns the next documents without a place, by their _id. It looks
// through so many that it ends in time, however large the collection is.
func (s *Source) findRest(ctx context.Context) (chunk, error) {
	until, err := s.restEnd(ctx)
	if err != nil {
		return chunk{}, err
	}
	all := append(s.restBehind(), withoutPlace(s.plan.Order))
	if !until.IsZero() {
		all = append(all, bson.D{{Key: "$nor", Value: bson.A{after(byID, []bson.RawValue{until})}}})
	}
	documents, _, err := s.find(ctx, s.wanted(all), options.Find().SetSort(ascending(byID)), s.most(), bson.RawValue{})
	return chunk{documents: documents, searched: until}, err
}

func (s *Source) restBehind() bson.A {
	if s.rest.behind.IsZero() {
		return nil
	}
	return bson.A{after(byID, []bson.RawValue{s.rest.behind})}
}

// restEnd is the _id of the last document to look at for a chunk; zero where fewer
// are left.
func (s *Source) restEnd(ctx context.Context) (bson.RawValue, error) {
	filter := bson.D{}
	if behind := s.restBehind(); behind != nil {
		filter = bson.D{{Key: "$and", Value: behind}}
	}
	found, err := s.collection.FindOne(ctx, filter, options.FindOne().
		SetSort(ascending(byID)).SetSkip(int64(s.fewer(s.plan.Searched)-1)).SetProjection(bson.D{{Key: "_id", Value: 1}})).Raw()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return bson.RawValue{}, nil
	}
	return found.Lookup("_id"), err
}

// pass goes on where a chunk has no document: behind what was looked through.
func (s *Source) pass(searched bson.RawValue) {
	switch {
	case !s.rest.begun:
		s.rest.begun, s.ended = true, len(ways(s.plan.Order)) == 0
	case searched.IsZero():
		s.ended = true
	default:
		s.rest.behind = searched
	}
}

// keyOf is the key of a document that was read.
func (s *Source) keyOf(document bson.Raw) (bson.Raw, error) {
	if !s.rest.begun {
		return keyOf(document, s.plan.Order)
	}
	s.rest.behind = document.Lookup("_id")
	raw, err := bson.Marshal(bson.D{{Key: restKey, Value: s.rest.behind}})
	if err != nil {
		return nil, fmt.Errorf("make a key of document %s: %w", s.rest.behind, err)
	}
	return raw, nil
}
