package engine

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/query/collation"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

// NewCollectionOptions makes options from the document that listCollections
// shows. A validator that only warns, or is off, refuses nothing.
func NewCollectionOptions(listed bson.Raw) (CollectionOptions, error) {
	o := CollectionOptions{Listed: listed, Capped: cappedOf(listed), View: viewOf(listed)}
	images, _ := bsonkit.Lookup(listed, "changeStreamPreAndPostImages.enabled")
	o.Images, _ = images.BooleanOK()
	if before, _ := bsonkit.Get(listed, "recordPreImages"); bsonkit.Truthy(before) {
		o.Images = true
	}
	if spec, given := bsonkit.Get(listed, "collation"); given {
		var err error
		if o.Collation, err = collation.Parse(spec.Value); err != nil {
			return o, err
		}
	}
	validator, there := bsonkit.Get(listed, "validator")
	level, _ := bsonkit.Get(listed, "validationLevel")
	action, _ := bsonkit.Get(listed, "validationAction")
	if levelName, _ := level.StringValueOK(); !there || levelName == "off" {
		return o, nil
	}
	if actionName, _ := action.StringValueOK(); actionName == "warn" {
		return o, nil
	}
	filter, err := match.Compile(validator.Value, expression.Env{Collation: o.Collation})
	if err != nil {
		return o, err
	}
	o.Validator = filter.Match
	levelName, _ := level.StringValueOK()
	o.Lenient = levelName == "moderate"
	return o, nil
}

// viewOf reads what a view is made of, nil for a collection.
func viewOf(listed bson.Raw) *ViewOptions {
	on, is := bsonkit.Get(listed, "viewOn")
	if !is {
		return nil
	}
	v := &ViewOptions{}
	v.On, _ = on.StringValueOK()
	pipeline, _ := bsonkit.Get(listed, "pipeline")
	for it := bsonkit.Iterate(pipeline.Value); it.Next(); {
		v.Pipeline = append(v.Pipeline, it.Value().Value)
	}
	return v
}
