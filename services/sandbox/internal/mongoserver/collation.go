package mongoserver

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
	"changerelay/services/sandbox/internal/query/collation"
)

// collation reads a collation.
func (a *arguments) collation(v bson.RawValue) *collation.Collation {
	parsed, err := collation.Parse(a.document("collation", v))
	if a.err == nil {
		a.err = err
	}
	return parsed
}

// collationOf is the collation of a statement: that given, else that of the
// collection.
func (c *call) collationOf(ns engine.Namespace, given *collation.Collation) *collation.Collation {
	if given != nil {
		return given
	}
	return c.server.engine.Options(ns).Collation
}

// collatedStages refuses stages that compare text in another way than their
// pipeline's collation asks for: only $match and $sort heed it.
func collatedStages(by *collation.Collation, stages []bson.Raw) error {
	if by.IsSimple() {
		return nil
	}
	for _, stage := range stages {
		switch name := stageName(stage); name {
		case "$match", "$sort", "$limit", "$skip", "$count", "$changeStream":
		case "$project", "$group":
			if holdsText(stage) {
				return mongoerr.New(mongoerr.NotImplemented, "%s with expressions is not supported with a collation", name)
			}
		default:
			return mongoerr.New(mongoerr.NotImplemented, "%s is not supported with a collation", name)
		}
	}
	return nil
}

// holdsText tells a document with text in it: it may be an expression that
// compares fields.
func holdsText(doc bson.Raw) bool {
	for it := bsonkit.Iterate(doc); it.Next(); {
		switch v := it.Value(); v.Type {
		case bson.TypeString, bson.TypeSymbol:
			return true
		case bson.TypeEmbeddedDocument, bson.TypeArray:
			if holdsText(v.Value) {
				return true
			}
		}
	}
	return false
}
