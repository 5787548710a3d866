package command

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/collation"
)

// Collation reads a collation.
func (a *Arguments) Collation(v bson.RawValue) *collation.Collation {
	parsed, err := collation.Parse(a.Document("collation", v))
	if a.Err == nil {
		a.Err = err
	}
	return parsed
}

// CollationOf is the collation of a statement: that given, else that of the
// collection.
func (c *Call) CollationOf(ns oplog.Namespace, given *collation.Collation) *collation.Collation {
	if given != nil {
		return given
	}
	return c.Server.Engine.Options(ns).Collation
}

// CollatedStages refuses stages that compare text in another way than their
// pipeline's collation asks for: only $match and $sort compare by it.
func CollatedStages(by *collation.Collation, stages []bson.Raw) error {
	if by.IsSimple() {
		return nil
	}
	for _, stage := range stages {
		switch name := StageName(stage); name {
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
