package match

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/collation"
)

// collated is a predicate on folded values. No bounds follow from it: indexes
// hold the values themselves.
type collated struct {
	by     *collation.Collation
	folded predicate
	// equal is the value that an equality asks for, as it was given.
	equal bson.RawValue
}

func (c *collated) pass(v bson.RawValue, at *int) bool { return c.folded.pass(c.by.Fold(v), at) }

// comparison compares as the filter's collation says.
func (p filterParser) comparison(op operator, field string, v bson.RawValue) (predicate, error) {
	by := p.env.Collation
	test, err := newComparison(op, field, by.Fold(v))
	if err != nil || !by.Folds(v) {
		return test, err
	}
	c := &collated{by: by, folded: test}
	if op == opEq {
		c.equal = v
	}
	return c, nil
}

// membership is $in as the filter's collation says.
func (p filterParser) membership(name string, v bson.RawValue) (predicate, error) {
	by := p.env.Collation
	if by.IsSimple() || v.Type != bson.TypeArray {
		return p.newMembership(name, v)
	}
	for _, element := range bsonkit.Values(v) {
		if element.Type == bson.TypeRegex {
			return nil, mongoerr.New(mongoerr.NotImplemented, "a regular expression in %s is not supported with a collation", name)
		}
	}
	test, err := p.newMembership(name, by.Fold(v))
	return &collated{by: by, folded: test}, err
}
