package backfill

import (
	"context"
	"fmt"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// listing is a document that was listed: its key, and its size in bytes then.
type listing struct {
	key  bson.Raw
	size int
}

// findListed returns the next documents in the order where no index has it. Their
// keys are listed, many at a time, as that goes through the whole collection, and
// the documents are read by their _id. A list is a chunk of its own, without a document:
// it is not lost where reading the documents fails.
func (s *Source) findListed(ctx context.Context) (chunk, error) {
	list := s.list
	if len(list) == 0 {
		fresh, err := s.listKeys(ctx)
		return chunk{listed: len(fresh) > 0, short: len(fresh) == 0, list: fresh, fresh: fresh}, err
	}
	n, size := 0, 0
	for n < min(len(list), s.mostListed()) && (n == 0 || size+list[n].size <= s.plan.Bytes) {
		size += list[n].size
		n++
	}
	n = s.fewer(n)
	ids := make(bson.A, n)
	for i, listed := range list[:n] {
		ids[i] = idOf(listed.key)
	}
	// An answer with room for one more is the last.
	cursor, err := s.collection.Find(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}}, options.Find().SetBatchSize(int32(n+1)))
	if err != nil {
		return chunk{}, err
	}
	var documents []bson.Raw
	if err := cursor.All(ctx, &documents); err != nil {
		return chunk{}, err
	}
	if len(documents) == 1 {
		if err := alone(ctx, documents[0], 0); err != nil {
			return chunk{}, err
		}
	}
	found := s.inOrder(list[:n], documents, list[n:])
	found.short = n == len(list) && s.listed
	return found, nil
}

func (s *Source) mostListed() int {
	if s.plan.Chunk > 0 {
		return s.plan.Chunk
	}
	return mostChunk
}

// idOf is the _id of a key's document, which is the last of the key's values.
func idOf(key bson.Raw) bson.RawValue {
	values, _ := key.Values()
	return values[len(values)-1]
}

// inOrder is a chunk of the listed documents that are still there. One that has
// lost its place in the order comes with the rest.
func (s *Source) inOrder(listed []listing, documents []bson.Raw, left []listing) chunk {
	byID := make(map[string]bson.Raw, len(documents))
	for _, document := range documents {
		byID[document.Lookup("_id").String()] = document
	}
	found := chunk{listed: true, list: left}
	for _, one := range listed {
		document := byID[idOf(one.key).String()]
		if document == nil {
			continue
		}
		if _, err := keyOf(document, s.plan.Order); err != nil {
			continue
		}
		found.documents, found.keys = append(found.documents, document), append(found.keys, one.key)
	}
	return found
}

// listKeys lists the next documents in the order behind the last one. Only what is
// listed is sorted, and no document as a whole.
func (s *Source) listKeys(ctx context.Context) ([]listing, error) {
	filter, err := s.placedFilter()
	if err != nil {
		return nil, err
	}
	shown, names := bson.D{{Key: "size", Value: bson.D{{Key: "$bsonSize", Value: "$$ROOT"}}}}, make([]string, len(s.plan.Order))
	for i, field := range s.plan.Order {
		// Names of no path: fields of the order may be in each other.
		names[i] = "at" + strconv.Itoa(i)
		shown = append(shown, bson.E{Key: names[i], Value: "$" + field})
	}
	cursor, err := s.collection.Aggregate(ctx, []bson.D{
		{{Key: "$match", Value: filter}}, {{Key: "$project", Value: shown}}, {{Key: "$sort", Value: ascending(names)}}, {{Key: "$limit", Value: s.plan.Listed}},
	}, options.Aggregate().SetAllowDiskUse(true))
	if err != nil {
		return nil, fmt.Errorf("list the next documents: %w", err)
	}
	defer func() { _ = cursor.Close(ctx) }()
	var list []listing
	bytes := 0
	for bytes < s.plan.ListedBytes && cursor.Next(ctx) {
		key, err := keyOf(cursor.Current, names)
		if err != nil {
			return nil, err
		}
		size, _ := cursor.Current.Lookup("size").AsInt64OK()
		list = append(list, listing{key, int(size)})
		bytes += len(key)
	}
	s.listed = len(list) < s.plan.Listed && bytes < s.plan.ListedBytes
	return list, cursor.Err()
}
