package backfill

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// SpelledError says that an aggregate has ids of two types, and an earlier version under
// the other: one that sorts behind, or that the copy has Passed, maybe before the event
// was there. So its events would not be sent as they were committed.
type SpelledError struct {
	ID, Other        bson.RawValue
	Version, Earlier int64
	Passed           bool
}

func (e *SpelledError) Error() string {
	if e.Passed {
		return fmt.Sprintf("the aggregate %s has version %d under an id of type %s and version %d under one of type %s, %s, which the copy has passed, "+
			"and is not known to be from before it: its events would be sent out of order", e.ID, e.Version, e.ID.Type, e.Earlier, e.Other.Type, e.Other)
	}
	return fmt.Sprintf("the aggregate %s has version %d under an id of type %s and version %d under one of type %s, %s, which sorts behind it: "+
		"along its ids its events would be sent out of order", e.ID, e.Version, e.ID.Type, e.Earlier, e.Other.Type, e.Other)
}

// event is what of a document says where it is in its aggregate.
type event struct {
	id      bson.RawValue
	version int64
}

// spellings are the ids of other types that are to be looked for, by type and value,
// with the highest version that is read under the id that they are another spelling of.
type spellings struct {
	values  bson.A
	passed  bson.A // of values, those that sort before
	of      map[string]event
	types   []bson.Type
	highest int64
}

// wire names a value, an integer of any size by one of 64 bits.
func wire(v bson.RawValue) string {
	if n, ok := v.Int32OK(); ok {
		v = bson.RawValue{Type: bson.TypeInt64, Value: bsoncore.AppendInt64(nil, int64(n))}
	}
	return string(append([]byte{byte(v.Type)}, v.Value...))
}

// add notes an event that is to be sent.
func (o *spellings) add(e event, others []bson.RawValue, passed bool) {
	for _, other := range others {
		before, known := o.of[wire(other)]
		if !known {
			o.values = append(o.values, other)
			if passed {
				o.passed = append(o.passed, other)
			}
			if !slices.Contains(o.types, other.Type) {
				o.types = append(o.types, other.Type)
			}
		}
		if !known || before.version < e.version {
			o.of[wire(other)] = e
		}
		o.highest = max(o.highest, e.version)
	}
}

// lowest are the lowest values of the types that have a text in common with another one.
var lowest = map[bson.Type]any{bson.TypeInt64: math.Inf(-1), bson.TypeString: "", bson.TypeBinary: bson.Binary{}, bson.TypeObjectID: bson.ObjectID{}}

// checkSpellings returns a *SpelledError where an aggregate of a chunk has earlier
// versions that come later in the order, or may have come behind the copy. What is looked at is as of the chunk or
// later; what of an aggregate is written after the chunk is of a later version.
func (s *Source) checkSpellings(ctx context.Context, found chunk) error {
	if s.plan.Spellings == nil || s.rest.begun {
		return nil
	}
	others := spellings{of: map[string]event{}}
	for _, e := range s.eventsOf(found) {
		others.add(e, s.plan.Spellings(e.id), false)
		if s.plan.Earlier != nil {
			others.add(e, s.plan.Earlier(e.id), true)
		}
	}
	if len(others.values) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, chunkTimeout)
	defer cancel()
	if there, err := s.hasTypes(ctx, others.types); err != nil || !there {
		return err
	}
	return s.findEarlier(ctx, others)
}

// eventsOf are the documents that a chunk has read, or listed, with an integer version.
func (s *Source) eventsOf(found chunk) []event {
	var events []event
	add := func(id, version bson.RawValue) {
		if n, ok := version.AsInt64OK(); ok {
			events = append(events, event{id, n})
		}
	}
	if found.listed {
		for _, one := range found.fresh {
			values, _ := one.key.Values()
			add(values[0], values[1])
		}
		return events
	}
	for _, document := range found.documents {
		id, _ := valueAt(document, s.plan.Order[0]) // it has a place
		version, _ := valueAt(document, s.plan.Order[1])
		add(id, version)
	}
	return events
}

// hasTypes reports whether there are ids of one of the types, which an index tells at
// once; true without one.
func (s *Source) hasTypes(ctx context.Context, types []bson.Type) (bool, error) {
	if s.index == nil {
		return true, nil
	}
	how := options.FindOne().SetHint(ascending(s.index.fields)).SetProjection(bson.D{{Key: "_id", Value: 1}})
	for _, kind := range types {
		filter := bson.D{{Key: s.plan.Order[0], Value: bson.D{{Key: "$gte", Value: lowest[kind]}}}} // finds its own kind only
		err := s.collection.FindOne(ctx, filter, how).Err()
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, mongo.ErrNoDocuments) {
			return false, fmt.Errorf("look for ids of type %s: %w", kind, err)
		}
	}
	return false, nil
}

// findEarlier looks for earlier versions under other spellings.
func (s *Source) findEarlier(ctx context.Context, others spellings) error {
	id, version := s.plan.Order[0], s.plan.Order[1]
	filter := s.wanted(append(withPlace(s.plan.Order),
		bson.D{{Key: id, Value: bson.D{{Key: "$in", Value: others.values}}}},
		bson.D{{Key: version, Value: bson.D{{Key: "$lt", Value: others.highest}}}}))
	if len(others.passed) > 0 {
		filter = bson.D{{Key: "$and", Value: bson.A{filter, bson.D{{Key: "$or", Value: bson.A{
			bson.D{{Key: id, Value: bson.D{{Key: "$nin", Value: others.passed}}}},
			writtenSince(s.plan.SinceField, s.start.Time().Add(-s.plan.Margin)),
		}}}}}}
	}
	how := options.Find().SetProjection(shown([]string{id, version}))
	if s.index != nil {
		how.SetHint(ascending(s.index.fields))
	}
	cursor, err := s.collection.Find(ctx, filter, how)
	if err != nil {
		return fmt.Errorf("look for ids of other types: %w", err)
	}
	defer func() { _ = cursor.Close(context.WithoutCancel(ctx)) }()
	for cursor.Next(ctx) {
		other, _ := valueAt(cursor.Current, id)
		at, _ := valueAt(cursor.Current, version)
		earlier, ok := at.AsInt64OK()
		if e, known := others.of[wire(other)]; ok && known && earlier < e.version {
			return &SpelledError{
				ID: e.id, Other: bson.RawValue{Type: other.Type, Value: slices.Clone(other.Value)}, Version: e.version, Earlier: earlier,
				Passed: slices.ContainsFunc(others.passed, func(v any) bool { return wire(v.(bson.RawValue)) == wire(other) }),
			}
		}
	}
	return cursor.Err()
}
