package match

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// fieldOperator reads one operator on a field. siblings is the document it
// stands in, for operators that are written as two.
func (p filterParser) fieldOperator(field, name string, v bson.RawValue, siblings bson.Raw) ([]term, error) {
	switch name {
	case "$eq", "$gt", "$gte", "$lt", "$lte":
		return one(p.comparison(operatorOf(name), field, v))
	case "$ne":
		if v.Type == bson.TypeRegex {
			return nil, mongoerr.New(mongoerr.BadValue, "Can't have regex as arg to $ne.")
		}
		return negated(p.comparison(opEq, field, v))
	case "$in":
		return one(p.membership(name, v))
	case "$nin":
		return negated(p.membership(name, v))
	case "$exists":
		return []term{{test: exists{}, negated: !bsonkit.Truthy(v)}}, nil
	case "$type":
		return one(newTypeTest(v))
	case "$mod":
		return one(newModulo(v))
	case "$regex":
		return one(p.regexOperator(v, siblings))
	case "$options":
		if _, ok := bsonkit.Get(siblings, "$regex"); !ok {
			return nil, mongoerr.New(mongoerr.BadValue, "$options needs a $regex")
		}
		return nil, nil
	case "$size":
		test, err := newSize(v)
		return []term{{test: test, whole: true}}, err
	case "$elemMatch":
		test, err := p.elemMatch(v)
		return []term{{test: test, whole: true}}, err
	case "$all":
		return p.all(field, v)
	case "$not":
		return p.not(field, v)
	case "$bitsAllSet", "$bitsAllClear", "$bitsAnySet", "$bitsAnyClear":
		return one(newBits(name, v))
	case "$comment":
		return nil, nil
	}
	return nil, mongoerr.New(mongoerr.BadValue, "unknown operator: %s", name)
}

func one[P predicate](test P, err error) ([]term, error) {
	return []term{{test: test}}, err
}

func negated[P predicate](test P, err error) ([]term, error) {
	return []term{{test: test, negated: true}}, err
}

func (p filterParser) not(field string, v bson.RawValue) ([]term, error) {
	if v.Type == bson.TypeRegex {
		return negated(p.regex(regexOf(v)))
	}
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, mongoerr.New(mongoerr.BadValue, "$not needs a regex or a document")
	}
	terms, err := p.operators(field, v.Value)
	if err == nil && len(terms) == 0 {
		err = mongoerr.New(mongoerr.BadValue, "$not cannot be empty")
	}
	return []term{{group: terms, negated: true}}, err
}

// all is a conjunction of equalities, regular expressions, or $elemMatches. An
// empty one matches nothing.
func (p filterParser) all(field string, v bson.RawValue) ([]term, error) {
	if v.Type != bson.TypeArray {
		return nil, mongoerr.New(mongoerr.BadValue, "$all needs an array")
	}
	var terms []term
	elements := bsonkit.Values(v)
	if n := countFunc(elements, isElemMatch); n > 0 && n < len(elements) {
		return nil, mongoerr.New(mongoerr.BadValue, "$all/$elemMatch has to be consistent")
	}
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		t, err := p.allElement(field, it.Value())
		if err != nil {
			return nil, err
		}
		terms = append(terms, t...)
	}
	if terms == nil {
		return []term{{test: never{}}}, nil
	}
	return terms, nil
}

func countFunc(values []bson.RawValue, is func(bson.RawValue) bool) int {
	n := 0
	for _, v := range values {
		if is(v) {
			n++
		}
	}
	return n
}

func isElemMatch(v bson.RawValue) bool {
	it := bsonkit.Iterate(v.Value)
	return v.Type == bson.TypeEmbeddedDocument && it.Next() && string(it.Key()) == "$elemMatch"
}

func (p filterParser) allElement(field string, v bson.RawValue) ([]term, error) {
	if !IsOperators(v) {
		return p.fieldTerms(field, v)
	}
	it := bsonkit.Iterate(v.Value)
	if it.Next(); string(it.Key()) != "$elemMatch" {
		return nil, mongoerr.New(mongoerr.BadValue, "no $ expressions in $all")
	}
	return p.fieldOperator(field, "$elemMatch", it.Value(), v.Value)
}

// elemMatch wants one element of an array to pass everything: as a value, where
// operators are given, as a document by a filter otherwise.
func (p filterParser) elemMatch(v bson.RawValue) (predicate, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, mongoerr.New(mongoerr.BadValue, "$elemMatch needs an Object")
	}
	inner := filterParser{env: p.env}
	if IsOperators(v) && !startsLogical(v.Value) {
		terms, err := inner.operators("", v.Value)
		return elemMatchValue(terms), err
	}
	filter, err := inner.document(v.Value)
	return elemMatchDocument{filter}, err
}

// startsLogical tells {$or: […]} in an $elemMatch, a filter for documents, from
// operators on values.
func startsLogical(doc bson.Raw) bool {
	it := bsonkit.Iterate(doc)
	it.Next()
	switch string(it.Key()) {
	case "$and", "$or", "$nor", "$expr", "$where":
		return true
	}
	return false
}
