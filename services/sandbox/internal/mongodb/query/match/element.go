package match

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
)

// Element reads what $pull wants of an element: a value to be equal to,
// operators for elements of any kind, or a filter for elements that are
// documents.
func Element(v bson.RawValue, env expression.Env) (func(element bson.RawValue) bool, error) {
	p := filterParser{env: env}
	switch {
	case v.Type == bson.TypeRegex, IsOperators(v) && !startsLogical(v.Value):
		terms, err := p.fieldTerms("", v)
		if err != nil {
			return nil, err
		}
		// An element is looked at as the field of a document would be.
		c := onPath(bsonkit.ParsePath(""), terms)
		return func(element bson.RawValue) bool {
			b := bsonkit.NewBuilder(nil)
			b.Append("", element)
			ok, _ := c.match(b.Finish(), nil) // no $expr in here
			return ok
		}, nil
	case v.Type == bson.TypeEmbeddedDocument:
		c, err := p.document(v.Value)
		if err != nil {
			return nil, err
		}
		return func(element bson.RawValue) bool {
			if element.Type != bson.TypeEmbeddedDocument {
				return false
			}
			ok, _ := c.match(element.Value, nil)
			return ok
		}, nil
	}
	return func(element bson.RawValue) bool { return bsonkit.Equal(v, element) }, nil
}

// ElementIndex reads the argument of an $elemMatch. What it returns gives the
// place of the first element of an array that fulfils it, -1 for none.
func ElementIndex(v bson.RawValue, env expression.Env) (func(array bson.RawValue) int, error) {
	test, err := filterParser{env: env}.elemMatch(v)
	if err != nil {
		return nil, err
	}
	return func(array bson.RawValue) int {
		at := -1
		if !test.pass(array, &at) {
			return -1
		}
		return at
	}, nil
}
