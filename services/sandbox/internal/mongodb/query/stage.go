package query

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
	"changerelay/services/sandbox/internal/mongodb/query/fieldpath"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

func compileStage(name string, v bson.RawValue, env PipelineEnv) (stage, error) {
	switch name {
	case "$bucketAuto", "$lookup", "$unionWith", "$graphLookup":
		// Their expressions and pipelines are optimized no sooner than they run.
		env.Folding = nil
	}
	switch name {
	case "$match":
		return matchStage(v, env)
	case "$project":
		return projectStage(v, env)
	case "$addFields", "$set":
		return addFieldsStage(name, v, env)
	case "$unset":
		return unsetStage(v)
	case "$replaceRoot":
		return replaceRootStage(v, env)
	case "$replaceWith":
		return replaceWith(name, v, env)
	case "$redact":
		return redactStage(v, env)
	case "$sort":
		return sortStage(v, env)
	case "$limit":
		return limitStage(v)
	case "$skip":
		return skipStage(v)
	case "$count":
		return countStage(v)
	case "$unwind":
		return unwindStage(v)
	case "$group":
		return groupStage(v, env)
	case "$sortByCount":
		return sortByCountStage(v, env)
	case "$bucketAuto":
		return bucketAutoStage(v, env)
	case "$bucket":
		return bucketStage(v, env)
	case "$lookup":
		return lookupStage(v, env)
	case "$unionWith":
		return unionStage(v, env)
	case "$graphLookup":
		return graphLookupStage(v, env)
	case "$facet":
		return facetStage(v, env)
	case "$sample":
		return sampleStage(v, env)
	}
	return stage{}, mongoerr.New(40324, "Unrecognized pipeline stage name: '%s'", name)
}

// mapping is a stage that makes one document of each.
func mapping(f func(doc bson.Raw) (bson.Raw, error)) stage {
	return stage{each: func(doc bson.Raw) (bson.Raw, bool, error) {
		made, err := f(doc)
		return made, err == nil, err
	}}
}

func matchStage(v bson.RawValue, env PipelineEnv) (stage, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return stage{}, mongoerr.New(15959, "the match filter must be an expression in an object")
	}
	env.Where = false
	f, err := match.Compile(v.Value, env.Env)
	return stage{match: f, each: func(doc bson.Raw) (bson.Raw, bool, error) {
		ok, err := f.Match(doc)
		return doc, ok, err
	}}, err
}

func projectStage(v bson.RawValue, env PipelineEnv) (stage, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return stage{}, mongoerr.New(15969, "$project specification must be an object")
	}
	p := projectionParser{env: env.Env, made: &Projection{shape: newShape()}}
	if err := p.read(v.Value); err != nil {
		return stage{}, invalid("$project", err)
	}
	if p.empty {
		return stage{}, mongoerr.New(51272, "Invalid $project :: caused by :: projection specification must have at least one field")
	}
	return mapping(p.made.Apply), nil
}

// invalid names the stage that an error came from.
func invalid(stage string, err error) error {
	return mongoerr.From(err).Prefixed("Invalid %s", stage)
}

func addFieldsStage(name string, v bson.RawValue, env PipelineEnv) (stage, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return stage{}, mongoerr.New(40272, "%s specification stage must be an object, got %s", name, bsonkit.TypeName(v.Type))
	}
	s := newShape()
	if err := addComputed(s, "", v.Value, env.Env); err != nil {
		return stage{}, invalid(name, err)
	}
	if len(s.names) == 0 {
		return stage{}, mongoerr.New(40177, "Invalid %s :: caused by :: specification must have at least one field", name)
	}
	return mapping(func(doc bson.Raw) (bson.Raw, error) { return s.overlay(doc, doc) }), nil
}

// addComputed reads fields to add. A document that is no expression names the
// fields below.
func addComputed(s *shape, path string, spec bson.Raw, env expression.Env) error {
	for it := bsonkit.Iterate(spec); it.Next(); {
		at, v := fieldpath.Join(path, string(it.Key())), it.Value()
		if v.Type == bson.TypeEmbeddedDocument && !match.IsOperators(v) {
			if sub := bsonkit.Iterate(v.Value); !sub.Next() {
				return mongoerr.New(40180, "an empty object is not a valid value. Found empty object at path %s", at)
			}
			if err := addComputed(s, at, v.Value, env); err != nil {
				return err
			}
			continue
		}
		e, err := expression.Compile(v, env)
		if err != nil {
			return err
		}
		if err := s.add(at, &shapeField{compute: e.Eval}); err != nil {
			return err
		}
	}
	return nil
}

func unsetStage(v bson.RawValue) (stage, error) {
	paths := []bson.RawValue{v}
	if v.Type == bson.TypeArray {
		paths = bsonkit.Values(v)
	} else if v.Type != bson.TypeString {
		return stage{}, mongoerr.New(31002, "$unset specification must be a string or an array")
	}
	if len(paths) == 0 {
		return stage{}, mongoerr.New(31119, "$unset specification must be a string or an array with at least one field")
	}
	s := newShape()
	for _, path := range paths {
		if path.Type != bson.TypeString {
			return stage{}, mongoerr.New(31120, "$unset specification must be a string or an array containing only string values")
		}
		if err := s.add(path.StringValue(), &shapeField{}); err != nil {
			return stage{}, invalid("$unset", err)
		}
	}
	return mapping(func(doc bson.Raw) (bson.Raw, error) { return s.exclude(doc), nil }), nil
}

func replaceRootStage(v bson.RawValue, env PipelineEnv) (stage, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return stage{}, mongoerr.New(40229, "expected an object as specification for $replaceRoot stage, got %s", bsonkit.TypeName(v.Type))
	}
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		if string(it.Key()) != "newRoot" {
			return stage{}, mongoerr.New(40415, "BSON field '$replaceRoot.%s' is an unknown field.", it.Key())
		}
	}
	root, ok := bsonkit.Get(v.Value, "newRoot")
	if !ok {
		return stage{}, mongoerr.New(40414, "BSON field '$replaceRoot.newRoot' is missing but a required field")
	}
	return replaceWith("'newRoot' expression ", root, env)
}

func replaceWith(what string, v bson.RawValue, env PipelineEnv) (stage, error) {
	e, err := expression.Compile(v, env.Env)
	if err != nil {
		return stage{}, err
	}
	return mapping(func(doc bson.Raw) (bson.Raw, error) {
		made, err := e.Eval(doc)
		if err == nil && made.Type != bson.TypeEmbeddedDocument {
			err = mongoerr.New(40228, "%s must evaluate to an object, but resulting value was: %s. Type of resulting value: '%s'.",
				strings.TrimSpace(what), bsonkit.Describe(made), bsonkit.TypeName(made.Type))
		}
		return made.Value, err
	}), nil
}
