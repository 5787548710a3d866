package modify

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

// addToSet is $addToSet.
type addToSet struct {
	creates
	values []bson.RawValue
	env    expression.Env
}

func newAddToSet(_ string, v bson.RawValue, env expression.Env) (mutation, error) {
	values := []bson.RawValue{v}
	if v.Type == bson.TypeEmbeddedDocument {
		it := bsonkit.Iterate(v.Value)
		if it.Next() && string(it.Key()) == "$each" {
			each := it.Value()
			if each.Type != bson.TypeArray {
				return nil, mongoerr.New(mongoerr.TypeMismatch,
					"The argument to $each in $addToSet must be an array but it was of type %s", bsonkit.TypeName(each.Type))
			}
			if it.Next() {
				return nil, mongoerr.New(mongoerr.BadValue, "Found unexpected fields after $each in $addToSet: %s", bsonkit.Describe(v))
			}
			values = bsonkit.Values(each)
		}
	}
	return addToSet{values: values, env: env}, nil
}

func (m addToSet) apply(present bson.RawValue, at place) (outcome, error) {
	var made []bson.RawValue
	switch present.Type {
	case bsonkit.Missing:
	case bson.TypeArray:
		made = bsonkit.Values(present)
	default:
		return outcome{}, mongoerr.New(mongoerr.BadValue,
			"Cannot apply $addToSet to non-array field. Field named '%s' has non-array type %s", at.field(), bsonkit.TypeName(present.Type))
	}
	there := newSet(m.env)
	if _, err := there.missing(made); err != nil {
		return outcome{}, err
	}
	added, err := there.missing(m.values)
	if err != nil || present.Type == bson.TypeArray && len(added) == 0 {
		return outcome{}, err
	}
	return outcome{kind: set, value: bsonkit.Array(append(made, added...))}, nil
}

// valueSet has each value once, as a collation compares them.
type valueSet struct {
	env  expression.Env
	keys map[string]struct{}
}

func newSet(env expression.Env) valueSet { return valueSet{env, map[string]struct{}{}} }

// missing adds values and returns those that were not there, in order.
func (s valueSet) missing(values []bson.RawValue) ([]bson.RawValue, error) {
	var added []bson.RawValue
	for _, v := range values {
		if err := interrupted(s.env); err != nil {
			return nil, err
		}
		key := s.env.Collation.Key(v)
		if _, there := s.keys[key]; !there {
			s.keys[key] = struct{}{}
			added = append(added, v)
		}
	}
	return added, nil
}

func (s valueSet) contains(v bson.RawValue) bool {
	_, there := s.keys[s.env.Collation.Key(v)]
	return there
}

// interrupted asks whether the statement is to end.
func interrupted(env expression.Env) error {
	if env.Interrupted == nil {
		return nil
	}
	return env.Interrupted()
}

// pop is $pop.
type pop struct {
	viable
	first bool
}

func newPop(path string, v bson.RawValue, _ expression.Env) (mutation, error) {
	if !bsonkit.IsNumber(v.Type) {
		return nil, mongoerr.New(mongoerr.FailedToParse, "Expected a number in: %s: %s", path, bsonkit.Describe(v))
	}
	n, ok := bsonkit.WholeNumber(v)
	if !ok || n != 1 && n != -1 {
		return nil, mongoerr.New(mongoerr.FailedToParse, "$pop expects 1 or -1, found: %s", bsonkit.Describe(v))
	}
	return pop{first: n < 0}, nil
}

func (m pop) apply(present bson.RawValue, at place) (outcome, error) {
	if present.Type == bsonkit.Missing {
		return outcome{}, nil
	}
	if present.Type != bson.TypeArray {
		return outcome{}, mongoerr.New(mongoerr.TypeMismatch,
			"Path '%s' contains an element of non-array type '%s'", at.path, bsonkit.TypeName(present.Type))
	}
	values := bsonkit.Values(present)
	switch {
	case len(values) == 0:
		return outcome{}, nil
	case m.first:
		values = values[1:]
	default:
		values = values[:len(values)-1]
	}
	return outcome{kind: set, value: bsonkit.Array(values)}, nil
}

// pull is $pull and $pullAll: it takes away the elements that fit.
type pull struct {
	viable
	fits func(element bson.RawValue) bool
	env  expression.Env
}

func newPullAll(_ string, v bson.RawValue, env expression.Env) (mutation, error) {
	if v.Type != bson.TypeArray {
		return nil, mongoerr.New(mongoerr.BadValue, "$pullAll requires an array argument but was given a %s", bsonkit.TypeName(v.Type))
	}
	unwanted := newSet(env)
	_, err := unwanted.missing(bsonkit.Values(v))
	return pull{fits: unwanted.contains, env: env}, err
}

// newPull reads what an element has to be to go.
func newPull(_ string, v bson.RawValue, env expression.Env) (mutation, error) {
	fits, err := match.Element(v, env)
	if err != nil {
		return nil, err
	}
	return pull{fits: fits, env: env}, nil
}

func (m pull) apply(present bson.RawValue, _ place) (outcome, error) {
	if present.Type == bsonkit.Missing {
		return outcome{}, nil
	}
	if present.Type != bson.TypeArray {
		return outcome{}, mongoerr.New(mongoerr.BadValue, "Cannot apply $pull to a non-array value")
	}
	var kept []bson.RawValue
	total := 0
	for it := bsonkit.Iterate(present.Value); it.Next(); total++ {
		if err := interrupted(m.env); err != nil {
			return outcome{}, err
		}
		if !m.fits(it.Value()) {
			kept = append(kept, it.Value())
		}
	}
	if len(kept) == total {
		return outcome{}, nil
	}
	return outcome{kind: set, value: bsonkit.Array(kept)}, nil
}
