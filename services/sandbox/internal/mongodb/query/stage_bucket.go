package query

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/collation"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
)

// buckets sorts values between boundaries; what fits none goes to otherwise.
type buckets struct {
	by         *expression.Expr
	boundaries []bson.RawValue
	otherwise  bson.RawValue // missing if there is no default
	order      *collation.Collation
}

func bucketStage(v bson.RawValue, env PipelineEnv) (stage, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return stage{}, mongoerr.New(40201, "Argument to $bucket stage must be an object, but found type: %s.", bsonkit.TypeName(v.Type))
	}
	b := &buckets{order: env.Collation}
	g := grouping{env: env.Env, key: b.find, fields: []groupField{counting("count")}}
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		var err error
		switch string(it.Key()) {
		case "groupBy":
			if !isPathOrObject(it.Value()) {
				return stage{}, mongoerr.New(40202, "The $bucket 'groupBy' field must be defined as a $-prefixed path or an expression, but found: %s.",
					bsonkit.Describe(it.Value()))
			}
			b.by, err = expression.Compile(it.Value(), env.Env)
		case "boundaries":
			b.boundaries, err = boundaries(it.Value(), env.Env)
		case "default":
			b.otherwise, err = constantValue(it.Value(), env.Env, 40195, "The $bucket 'default' field must be a constant")
		case "output":
			g.fields, err = bucketOutput(it.Value(), env.Env)
		default:
			err = mongoerr.New(40197, "Unrecognized option to $bucket: %s.", it.Key())
		}
		if err != nil {
			return stage{}, err
		}
	}
	if b.by == nil || b.boundaries == nil {
		return stage{}, mongoerr.New(40198, "$bucket requires 'groupBy' and 'boundaries' to be specified.")
	}
	low, high := b.boundaries[0], b.boundaries[len(b.boundaries)-1]
	if b.otherwise.Type != bsonkit.Missing && env.Collation.Compare(b.otherwise, low) >= 0 && env.Collation.Compare(b.otherwise, high) < 0 {
		return stage{}, mongoerr.New(40199, "The $bucket 'default' field must be less than the lowest boundary or greater than or equal to the highest boundary.")
	}
	return stage{run: func(_ context.Context, in documents) documents {
		return func(yield func(bson.Raw, error) bool) {
			groups, err := g.collect(in)
			if err != nil {
				yield(nil, err)
				return
			}
			slices.SortStableFunc(groups, func(x, y *group) int { return env.Collation.Compare(x.id, y.id) })
			for _, gr := range groups {
				doc, err := g.document(gr)
				if !yield(doc, err) || err != nil {
					return
				}
			}
		}
	}}, nil
}

func (b *buckets) find(doc bson.Raw) (bson.RawValue, error) {
	v, err := b.by.Eval(doc)
	if err != nil {
		return v, err
	}
	folded := b.order.Fold(v)
	if expression.Compare(folded, b.order.Fold(b.boundaries[0])) >= 0 {
		for i, upper := range b.boundaries[1:] {
			if expression.Compare(folded, b.order.Fold(upper)) < 0 {
				return b.boundaries[i], nil
			}
		}
	}
	if b.otherwise.Type == bsonkit.Missing {
		return v, mongoerr.New(40066, "$switch could not find a matching branch for an input, and no default was specified.")
	}
	return b.otherwise, nil
}

func constantValue(v bson.RawValue, env expression.Env, code mongoerr.Code, refusal string) (bson.RawValue, error) {
	e, err := expression.Compile(v, env)
	if err != nil {
		return v, err
	}
	value, ok := e.Constant()
	if !ok {
		return v, mongoerr.New(code, "%s, but found: %s", refusal, bsonkit.Describe(v))
	}
	return value, nil
}

func boundaries(v bson.RawValue, env expression.Env) ([]bson.RawValue, error) {
	if v.Type != bson.TypeArray {
		return nil, mongoerr.New(40200, "The $bucket 'boundaries' field must be an array, but found type: %s.", bsonkit.TypeName(v.Type))
	}
	var limits []bson.RawValue
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		limit, err := constantValue(it.Value(), env, 40191, "The $bucket 'boundaries' field must be an array of constant values")
		if err != nil {
			return nil, err
		}
		if n := len(limits); n > 0 {
			if !bsonkit.SameOrder(limits[n-1].Type, limit.Type) {
				return nil, mongoerr.New(40193, "All values in the the 'boundaries' option to $bucket must have the same type.")
			}
			if env.Collation.Compare(limits[n-1], limit) >= 0 {
				return nil, mongoerr.New(40194, "The 'boundaries' option to $bucket must be sorted, but elements %d and %d are not in ascending order", n-1, n)
			}
		}
		limits = append(limits, limit)
	}
	if len(limits) < 2 {
		return nil, mongoerr.New(40192, "The $bucket 'boundaries' field must have at least 2 values, but found %d value(s).", len(limits))
	}
	return limits, nil
}

func bucketOutput(v bson.RawValue, env expression.Env) ([]groupField, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, mongoerr.New(40196, "The $bucket 'output' field must be an object, but found type: %s.", bsonkit.TypeName(v.Type))
	}
	var fields []groupField
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		f, err := newGroupField(string(it.Key()), it.Value(), env)
		if err != nil {
			return nil, err
		}
		fields = append(fields, f)
	}
	return fields, nil
}
