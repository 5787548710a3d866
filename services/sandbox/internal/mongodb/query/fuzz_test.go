package query_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/query"
	"changerelay/services/sandbox/internal/mongodb/query/querytest"
)

// FuzzPipeline compiles and runs whatever comes as a pipeline: no panic.
func FuzzPipeline(f *testing.F) {
	for _, json := range []string{
		`{"v":[{"$match":{"n":5}},{"$project":{"a":1,"x":{"$slice":["$a",1]}}}]}`, `{"v":[{"$unwind":"$a"},{"$group":{"_id":"$a","n":{"$sum":1}}},{"$sort":{"n":-1}}]}`,
		`{"v":[{"$facet":{"f":[{"$count":"n"}]}},{"$replaceWith":{"$arrayElemAt":["$f",0]}}]}`,
		`{"v":[{"$addFields":{"t":{"$dateToString":{"date":"$d","format":"%Y"}},"u":{"$toUpper":"$s"},"v":{"$substrCP":["$s",1,2]}}}]}`,
		`{"v":[{"$bucket":{"groupBy":"$n","boundaries":[0,9]}},{"$sortByCount":"$count"},{"$limit":1}]}`,
		`{"v":[{"$set":{"m":{"$map":{"input":"$a","in":{"$convert":{"input":"$$this","to":"string","onError":"$s"}}}}}}]}`,
	} {
		f.Add([]byte(querytest.Document(f, json)))
	}
	docs := []bson.Raw{querytest.Document(f, querytest.Probe), querytest.Document(f, `{"_id":2}`)}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if bsonkit.Validate(raw, 50) != nil {
			t.Skip("no document")
		}
		var stages []bson.Raw
		spec, _ := bsonkit.Get(raw, "v")
		for _, s := range bsonkit.Values(spec) {
			if s.Type != bson.TypeEmbeddedDocument {
				t.Skip("no stage")
			}
			stages = append(stages, s.Value)
		}
		p, err := query.CompilePipeline(stages, query.PipelineEnv{Env: querytest.Env()})
		if err != nil {
			return
		}
		for doc, err := range p.Run(t.Context(), stream(docs)) {
			if err == nil && bsonkit.Validate(doc, 300) != nil {
				t.Fatalf("pipeline made an invalid document: %x", []byte(doc))
			}
		}
	})
}
