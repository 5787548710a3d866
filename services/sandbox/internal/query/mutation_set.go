package query

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/mongoerr"
)

// addToSet is $addToSet.
type addToSet struct {
	creates
	values []bson.RawValue
}

func newAddToSet(_ string, v bson.RawValue, _ Env) (mutation, error) {
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
	var distinct []bson.RawValue
	for _, v := range values {
		if !contains(distinct, v) {
			distinct = append(distinct, v)
		}
	}
	return addToSet{values: distinct}, nil
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
	before := len(made)
	for _, v := range m.values {
		if !contains(made, v) {
			made = append(made, v)
		}
	}
	if present.Type == bson.TypeArray && len(made) == before {
		return outcome{}, nil
	}
	return outcome{kind: set, value: bsonkit.Array(made)}, nil
}

func contains(values []bson.RawValue, v bson.RawValue) bool {
	for _, w := range values {
		if bsonkit.Equal(v, w) {
			return true
		}
	}
	return false
}

// pop is $pop.
type pop struct {
	tolerates
	first bool
}

func newPop(path string, v bson.RawValue, _ Env) (mutation, error) {
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
	tolerates
	fits func(element bson.RawValue) bool
}

func newPullAll(_ string, v bson.RawValue, _ Env) (mutation, error) {
	if v.Type != bson.TypeArray {
		return nil, mongoerr.New(mongoerr.BadValue, "$pullAll requires an array argument but was given a %s", bsonkit.TypeName(v.Type))
	}
	unwanted := bsonkit.Values(v)
	return pull{fits: func(element bson.RawValue) bool { return contains(unwanted, element) }}, nil
}

// newPull reads a value to be equal to, operators for elements of any kind, or
// a filter for elements that are documents.
func newPull(_ string, v bson.RawValue, env Env) (mutation, error) {
	p := filterParser{env: env}
	switch {
	case v.Type == bson.TypeRegex, isOperators(v) && !startsLogical(v.Value):
		terms, err := p.fieldTerms("", v)
		if err != nil {
			return nil, err
		}
		// An element is looked at as the field of a document would be.
		c := onPath(bsonkit.ParsePath(""), terms)
		return pull{fits: func(element bson.RawValue) bool {
			b := bsonkit.NewBuilder(nil)
			b.Append("", element)
			ok, _ := c.match(b.Finish(), nil) // no $expr in here
			return ok
		}}, nil
	case v.Type == bson.TypeEmbeddedDocument:
		c, err := p.document(v.Value)
		if err != nil {
			return nil, err
		}
		return pull{fits: func(element bson.RawValue) bool {
			if element.Type != bson.TypeEmbeddedDocument {
				return false
			}
			ok, _ := c.match(element.Value, nil)
			return ok
		}}, nil
	}
	return pull{fits: func(element bson.RawValue) bool { return bsonkit.Equal(v, element) }}, nil
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
		if !m.fits(it.Value()) {
			kept = append(kept, it.Value())
		}
	}
	if len(kept) == total {
		return outcome{}, nil
	}
	return outcome{kind: set, value: bsonkit.Array(kept)}, nil
}
