package backfill

import (
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// ascending is the pattern of an index, or a sort, along an order of fields.
func ascending(order []string) bson.D {
	pattern := make(bson.D, len(order))
	for i, field := range order {
		pattern[i] = bson.E{Key: field, Value: 1}
	}
	return pattern
}

// placedFilter matches the documents with a place in the order behind the last.
func (s *Source) placedFilter() (bson.D, error) {
	all := withPlace(s.plan.Order)
	key, err := s.key()
	if key != nil {
		all = append(all, after(s.plan.Order, key))
	}
	return s.wanted(all), err
}

// key is the values of the order's fields at the last document; nil before the
// first.
func (s *Source) key() ([]bson.RawValue, error) {
	if s.after == nil {
		return nil, nil
	}
	key, err := bson.Raw(s.after).Values()
	if err != nil || len(key) != len(s.plan.Order) {
		return nil, fmt.Errorf("the copy's last key %s does not go with the order %q", bson.Raw(s.after), s.plan.Order)
	}
	return key, nil
}

// wanted are conditions, and that a document is one of those that are copied.
func (s *Source) wanted(all bson.A) bson.D {
	if !s.plan.Since.IsZero() {
		all = append(all, writtenSince(s.plan.SinceField, s.plan.Since))
	}
	if len(s.plan.Filter) > 0 {
		all = append(all, s.plan.Filter)
	}
	if len(all) == 0 {
		return bson.D{}
	}
	return bson.D{{Key: "$and", Value: all}}
}

// writtenSince matches what is not known to be written before a time.
func writtenSince(field string, since time.Time) bson.D {
	return bson.D{{Key: "$or", Value: bson.A{
		bson.D{{Key: field, Value: bson.D{{Key: "$gte", Value: since}}}},
		bson.D{{Key: field, Value: bson.D{{Key: "$gte", Value: FirstObjectID(since)}}}},
		bson.D{{Key: field, Value: bson.D{{Key: "$not", Value: bson.D{{Key: "$type", Value: bson.A{"date", "objectId"}}}}}}},
		bson.D{{Key: field, Value: bson.D{{Key: "$type", Value: "array"}}}}, // which an element of either type does not make one
	}}}
}

// FirstObjectID is the lowest ObjectId of a second.
func FirstObjectID(t time.Time) bson.ObjectID {
	id := bson.NewObjectIDFromTimestamp(t)
	clear(id[4:])
	return id
}
