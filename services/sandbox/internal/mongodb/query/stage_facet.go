package query

import (
	"context"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
	"changerelay/services/sandbox/internal/mongodb/query/fieldpath"
)

// facets are pipelines over the same documents.
type facets struct {
	names     []string
	pipelines []*Pipeline
}

func facetStage(v bson.RawValue, env PipelineEnv) (stage, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return stage{}, mongoerr.New(40169, "the $facet specification must be a non-empty object, but found: %s", bsonkit.Describe(v))
	}
	var f facets
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		p, err := facetPipeline(string(it.Key()), it.Value(), env)
		if err != nil {
			return stage{}, err
		}
		f.names, f.pipelines = append(f.names, string(it.Key())), append(f.pipelines, p)
	}
	if f.names == nil {
		return stage{}, mongoerr.New(40169, "the $facet specification must be a non-empty object, but found: {}")
	}
	return stage{run: f.run}, nil
}

func facetPipeline(name string, v bson.RawValue, env PipelineEnv) (*Pipeline, error) {
	if err := fieldpath.Check(name); err != nil {
		return nil, err
	}
	if strings.Contains(name, ".") {
		return nil, mongoerr.New(16412, "FieldPath field names may not contain '.'.")
	}
	if v.Type != bson.TypeArray {
		return nil, mongoerr.New(40170, "arguments to $facet must be arrays, %s is type %s", name, bsonkit.TypeName(v.Type))
	}
	var stages []bson.Raw
	for _, s := range bsonkit.Values(v) {
		if s.Type != bson.TypeEmbeddedDocument {
			return nil, mongoerr.New(40171, "elements of arrays in $facet spec must be non-empty objects, %s argument contained an element of type %s", name, bsonkit.TypeName(s.Type))
		}
		stages = append(stages, s.Value)
	}
	for _, s := range stages {
		switch name := stageName(s); name {
		case "$facet", "$out", "$merge", "$geoNear", "$indexStats", "$collStats", "$planCacheStats", "$changeStream",
			"$currentOp", "$listSessions", "$listLocalSessions":
			return nil, mongoerr.New(40600, "%s is not allowed to be used within a $facet stage", name)
		}
	}
	return CompilePipeline(stages, env)
}

func (f facets) run(ctx context.Context, in documents) documents {
	return func(yield func(bson.Raw, error) bool) {
		all, err := collect(in, newMemory("$facet", mongoerr.ExceededMemoryLimit, expression.Env{Spills: true}))
		if err != nil {
			yield(nil, err)
			return
		}
		b := bsonkit.NewBuilder(nil)
		for i, p := range f.pipelines {
			made, err := collect(p.Run(ctx, given(all)), newMemory("$facet", mongoerr.ExceededMemoryLimit, expression.Env{}))
			if err != nil {
				yield(nil, err)
				return
			}
			values := make([]bson.RawValue, len(made))
			for j, doc := range made {
				values[j] = bsonkit.Document(doc)
			}
			b.Append(f.names[i], bsonkit.Array(values))
		}
		yield(b.Finish(), nil)
	}
}
