package query

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// unionStage gives the documents of another collection, through a pipeline of
// their own, after those that come in
// (https://www.mongodb.com/docs/v4.4/reference/operator/aggregation/unionWith/).
func unionStage(v bson.RawValue, env PipelineEnv) (stage, error) {
	name, given := v.StringValueOK()
	var stages []bson.Raw
	if !given {
		if v.Type != bson.TypeEmbeddedDocument {
			return stage{}, mongoerr.New(mongoerr.FailedToParse, "the $unionWith stage specification must be an object or string, but found %s",
				bsonkit.TypeName(v.Type))
		}
		for it := bsonkit.Iterate(v.Value); it.Next(); {
			switch field, v := string(it.Key()), it.Value(); field {
			case "coll":
				if name, given = v.StringValueOK(); !given {
					return stage{}, mongoerr.New(mongoerr.TypeMismatch, "BSON field '$unionWith.coll' is the wrong type '%s', expected type 'string'",
						bsonkit.TypeName(v.Type))
				}
			case "pipeline":
				var err error
				if stages, err = subPipeline(v); err != nil {
					return stage{}, err
				}
			default:
				return stage{}, mongoerr.New(40415, "BSON field '$unionWith.%s' is an unknown field.", field)
			}
		}
	}
	if !given {
		return stage{}, mongoerr.New(40414, "BSON field '$unionWith.coll' is missing but a required field")
	}
	if err := notWritten(stages, 31441, "$unionWith"); err != nil {
		return stage{}, err
	}
	p, err := CompilePipeline(stages, env)
	if err != nil {
		return stage{}, err
	}
	return stage{run: func(ctx context.Context, in documents) documents {
		return func(yield func(bson.Raw, error) bool) {
			for doc, err := range in {
				if !yield(doc, err) || err != nil {
					return
				}
			}
			filter, rest := p.LeadingMatch()
			for doc, err := range rest.Run(ctx, env.Collection(ctx, name, filter)) {
				if !yield(doc, err) || err != nil {
					return
				}
			}
		}
	}}, nil
}

// subPipeline reads a pipeline inside a stage.
func subPipeline(v bson.RawValue) ([]bson.Raw, error) {
	if v.Type != bson.TypeArray {
		return nil, mongoerr.New(mongoerr.TypeMismatch, "'pipeline' option must be specified as an array")
	}
	var stages []bson.Raw
	for _, s := range bsonkit.Values(v) {
		if s.Type != bson.TypeEmbeddedDocument {
			return nil, mongoerr.New(mongoerr.TypeMismatch, "Each element of the 'pipeline' array must be an object")
		}
		stages = append(stages, s.Value)
	}
	return stages, nil
}
