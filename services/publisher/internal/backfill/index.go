package backfill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
)

// Index is an index that serves a copy: it has the copy's order, one key of each
// document, and a place to go on at for each of them.
type Index struct {
	Name string
	// fields are the index's: the order's, or those without _id where there is only
	// one document of each key.
	fields []string
}

// Serving asks the server how it would read a collection along an order, and
// returns the index that serves that; nil where there is none. It needs the right
// to find.
func Serving(ctx context.Context, collection *mongo.Collection, order []string) (*Index, error) {
	for fields := order; len(fields) > 0 && len(fields) > len(order)-2; fields = fields[:len(fields)-1] {
		plan, err := explain(ctx, collection, fields)
		switch {
		case noSuchIndex(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("ask how %s would be read along %q: %w", collection.Name(), fields, err)
		}
		var stages []bson.Raw
		stagesOf(plan, &stages)
		if name, serves := judge(stages, len(fields) < len(order)); serves {
			return &Index{Name: name, fields: fields}, nil
		}
	}
	return nil, nil //nolint:nilnil // none is an answer
}

// explain returns the plan of a find along fields through the index of just these.
func explain(ctx context.Context, collection *mongo.Collection, fields []string) (bson.Raw, error) {
	reply, err := collection.Database().RunCommand(ctx, bson.D{
		{Key: "explain", Value: bson.D{
			{Key: "find", Value: collection.Name()}, {Key: "hint", Value: ascending(fields)}, {Key: "sort", Value: ascending(fields)},
		}},
		{Key: "verbosity", Value: "queryPlanner"},
	}, options.RunCmd().SetReadPreference(readpref.Primary())).Raw()
	if err != nil {
		return nil, err
	}
	plan, _ := reply.Lookup("queryPlanner", "winningPlan").DocumentOK()
	return plan, nil
}

// noSuchIndex reports that a hint names no index: BadValue, IndexNotFound and
// NoQueryExecutionPlans, by version.
func noSuchIndex(err error) bool {
	said, ok := errors.AsType[mongo.CommandError](err)
	return ok && slices.Contains([]int32{2, 27, 291}, said.Code)
}

// stagesOf gathers the stages of a plan. That of a sharded collection has those of
// each shard, with the plans that were not chosen.
func stagesOf(plan bson.Raw, all *[]bson.Raw) {
	if _, err := plan.LookupErr("stage"); err == nil {
		*all = append(*all, plan)
	}
	elements, _ := plan.Elements()
	for _, element := range elements {
		if element.Key() == "rejectedPlans" {
			continue
		}
		if inner, ok := element.Value().DocumentOK(); ok {
			stagesOf(inner, all)
		} else if list, ok := element.Value().ArrayOK(); ok {
			stagesOf(bson.Raw(list), all)
		}
	}
}

// judge says whether a plan reads each document once and in order, with nothing
// but the index, and which that is. One that has no documents to read does, too.
func judge(stages []bson.Raw, mustBeUnique bool) (name string, serves bool) {
	for _, stage := range stages {
		switch kind, _ := stage.Lookup("stage").StringValueOK(); kind {
		case "SORT", "COLLSCAN":
			return "", false
		case "EOF":
			serves = true
		case "IXSCAN":
			is := func(field string) bool { yes, _ := stage.Lookup(field).BooleanOK(); return yes }
			_, collated := stage.Lookup("collation").DocumentOK()
			if collated || is("isMultiKey") || is("isSparse") || is("isPartial") || mustBeUnique && !is("isUnique") {
				return "", false
			}
			name, _ = stage.Lookup("indexName").StringValueOK()
			serves = true
		}
	}
	return name, serves
}

// Index returns the index that the copy goes along; nil where none serves it, or
// that is not known yet.
func (s *Source) Index() *Index {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index
}

// choose finds out which index serves the copy, where that is not known.
func (s *Source) choose(ctx context.Context) error {
	if s.asked {
		return nil
	}
	index, err := Serving(ctx, s.collection, s.plan.Order)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.index, s.asked = index, true
	s.mu.Unlock()
	if index == nil && len(s.plan.Order) > 1 {
		s.log.Warn().Strs("order", s.plan.Order).Int("listed", s.plan.Listed).
			Msg("no index serves the copy: it goes through the collection once for each so many documents; publisher doctor names the index")
	}
	return nil
}

// findAlong returns the next documents along the index, from the key of the last
// one on.
func (s *Source) findAlong(ctx context.Context) (chunk, error) {
	how := options.Find().SetHint(ascending(s.index.fields)).SetSort(ascending(s.index.fields))
	key, err := s.key()
	if err != nil {
		return chunk{}, err
	}
	if s.plan.Narrow {
		filter, err := s.placedFilter()
		if err != nil {
			return chunk{}, err
		}
		documents, full, err := s.find(ctx, filter, how, s.most(), bson.RawValue{})
		return chunk{documents: documents, short: !full}, err
	}
	var reached bson.Raw
	if len(s.plan.Filter) > 0 || !s.plan.Since.IsZero() {
		if reached, err = s.searchEnd(ctx, key); err != nil {
			return chunk{}, err
		}
		if reached != nil {
			how.SetMax(s.bound(reached))
		}
	}
	var known bson.RawValue
	if key != nil {
		from := s.bound(bson.Raw(s.after))
		how.SetMin(from)
		if !s.unread {
			known = key[len(key)-1]
		}
	}
	documents, full, err := s.find(ctx, s.wanted(withPlace(s.plan.Order)), how, s.most(), known)
	return chunk{documents: documents, reached: reached, short: !full && reached == nil}, err
}

// bound is a key as a bound of the index.
func (s *Source) bound(key bson.Raw) bson.D {
	values, _ := key.Values() // as many as the order has: see key and keyOf
	bound := make(bson.D, len(s.index.fields))
	for i, field := range s.index.fields {
		bound[i] = bson.E{Key: field, Value: values[i]}
	}
	return bound
}

// searchEnd is the key of the document up to which the index is looked through for
// the next that match the filter, or are of Since or later; nil where fewer are left.
func (s *Source) searchEnd(ctx context.Context, from []bson.RawValue) (bson.Raw, error) {
	how := options.FindOne().SetHint(ascending(s.index.fields)).SetSort(ascending(s.index.fields)).SetSkip(int64(s.fewer(s.plan.Searched)))
	if from != nil {
		how.SetMin(s.bound(bson.Raw(s.after)))
	}
	placed := bson.D{}
	if all := withPlace(s.plan.Order); len(all) > 0 {
		placed = bson.D{{Key: "$and", Value: all}}
	}
	found, err := s.collection.FindOne(ctx, placed, how.SetProjection(shown(s.plan.Order))).Raw()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return keyOf(found, s.plan.Order)
}

// shown is a projection of fields. One that is inside another comes with it: a server
// refuses to be asked for both.
func shown(fields []string) bson.D {
	projection := bson.D{}
	for _, field := range fields {
		if !slices.ContainsFunc(fields, func(other string) bool { return strings.HasPrefix(field, other+".") }) {
			projection = append(projection, bson.E{Key: field, Value: 1})
		}
	}
	return projection
}
