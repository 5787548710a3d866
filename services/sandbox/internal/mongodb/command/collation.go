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

// CollatedStages refuses stages with expressions that compare text, as those do
// so by bytes, and not as their pipeline's collation asks for.
func CollatedStages(by *collation.Collation, stages []bson.Raw) error {
	if by.IsSimple() {
		return nil
	}
	for _, stage := range stages {
		if operator := comparingIn(stage); operator != "" {
			return mongoerr.New(mongoerr.NotImplemented, "%s in %s is not supported with a collation", operator, StageName(stage))
		}
	}
	return nil
}

// comparingIn finds an operator of an expression that compares text, in a stage or
// in the pipelines within it; empty for none. Filters compare by the collation.
func comparingIn(stage bson.Raw) string {
	it := bsonkit.Iterate(stage)
	it.Next()
	name, v := string(it.Key()), it.Value()
	switch name {
	case "$match", "$sort":
		return ""
	case "$facet", "$lookup", "$unionWith", "$graphLookup":
	default:
		return collation.ComparingOperator(v)
	}
	if v.Type != bson.TypeEmbeddedDocument {
		return ""
	}
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		operator := ""
		switch field := string(it.Key()); {
		case field == "restrictSearchWithMatch":
		case field == "pipeline" || name == "$facet":
			operator = comparingWithin(it.Value())
		default:
			operator = collation.ComparingOperator(it.Value())
		}
		if operator != "" {
			return operator
		}
	}
	return ""
}

func comparingWithin(pipeline bson.RawValue) string {
	if pipeline.Type != bson.TypeArray {
		return ""
	}
	for _, stage := range bsonkit.Values(pipeline) {
		doc, _ := stage.DocumentOK()
		if operator := comparingIn(doc); operator != "" {
			return operator
		}
	}
	return ""
}
