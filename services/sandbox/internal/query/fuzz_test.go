package query_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/query"
)

// probe has something for most operators to look at.
const probe = `{"_id":1,"a":[1,{"b":[2,"x"]},[3]],"n":5,"s":"text","o":{"x":{"y":null}},"d":{"$date":{"$numberLong":"5"}}}`

// FuzzCompileFilter compiles whatever document comes as a filter: no panic, and
// a match, if there is one, within the filter's own bounds.
func FuzzCompileFilter(f *testing.F) {
	for _, json := range []string{
		`{"a":1}`, `{"a":{"$in":[1,"x",null]},"n":{"$gt":1,"$lte":9}}`, `{"$or":[{"s":{"$regex":"^t","$options":"i"}},{"n":{"$mod":[5,0]}}]}`,
		`{"a":{"$elemMatch":{"b":{"$all":[2]}}}}`, `{"n":{"$not":{"$type":["int",2]}}}`, `{"n":{"$bitsAllSet":[0,2]}}`,
		`{"$expr":{"$and":[{"$gt":["$n",1]},{"$eq":[{"$size":"$a"},3]}]}}`,
		`{"$expr":{"$reduce":{"input":{"$range":[0,9]},"initialValue":0,"in":{"$add":["$$value","$$this"]}}}}`,
	} {
		f.Add([]byte(document(f, json)))
	}
	doc := document(f, probe)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if bsonkit.Validate(raw, 50) != nil {
			t.Skip("no document")
		}
		filter, err := query.CompileFilter(raw, env())
		if err != nil {
			return
		}
		ok, err := filter.Match(doc)
		if err != nil || !ok {
			return
		}
		for _, path := range []string{"a", "n", "s", "o.x"} {
			values, multikey := bsonkit.IndexValues(doc, path)
			ranges := filter.Bounds(path, multikey).Ranges(false)
			found := false
			for _, v := range values {
				found = found || within(ranges, bsonkit.AppendKey(nil, v))
			}
			if !found {
				t.Errorf("%s matches, but an index on %s would hide it", bson.Raw(raw), path)
			}
		}
	})
}

// FuzzUpdate compiles and applies whatever comes as an update: no panic, and
// what it makes is a valid document with the same _id.
func FuzzUpdate(f *testing.F) {
	for _, json := range []string{
		`{"v":{"$set":{"a.1.b":1,"new.x":2},"$unset":{"s":1},"$inc":{"n":1}}}`, `{"v":{"$push":{"a":{"$each":[1],"$sort":1,"$slice":-2}}}}`,
		`{"v":{"x":1}}`, `{"v":[{"$set":{"a":{"$concatArrays":["$a",[1]]}}},{"$unset":"n"}]}`, `{"v":{"$rename":{"o.x":"p.q"},"$pull":{"a":1}}}`,
		`{"v":{"$set":{"a.$[]":1}}}`, `{"v":{"$currentDate":{"d":true},"$bit":{"n":{"xor":3}},"$min":{"k":1}}}`,
	} {
		f.Add([]byte(document(f, json)))
	}
	doc := document(f, probe)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if bsonkit.Validate(raw, 50) != nil {
			t.Skip("no document")
		}
		spec, _ := bsonkit.Get(raw, "v")
		u, err := query.CompileUpdate(spec, query.UpdateOptions{Env: env()})
		if err != nil {
			return
		}
		if made, err := u.Upsert(nil); err == nil && bsonkit.Validate(made, 300) != nil {
			t.Errorf("upsert made an invalid document of %s", bson.Raw(raw))
		}
		got, err := u.Apply(doc, nil)
		if err != nil {
			return
		}
		if err := bsonkit.Validate(got.Doc, 300); err != nil {
			t.Fatalf("update made an invalid document: %v", err)
		}
		if id, _ := bsonkit.Get(got.Doc, "_id"); !bsonkit.Equal(id, bsonkit.Int32(1)) {
			t.Errorf("the _id became %v", id)
		}
	})
}

// FuzzPipeline compiles and runs whatever comes as a pipeline: no panic.
func FuzzPipeline(f *testing.F) {
	for _, json := range []string{
		`{"v":[{"$match":{"n":5}},{"$project":{"a":1,"x":{"$slice":["$a",1]}}}]}`, `{"v":[{"$unwind":"$a"},{"$group":{"_id":"$a","n":{"$sum":1}}},{"$sort":{"n":-1}}]}`,
		`{"v":[{"$facet":{"f":[{"$count":"n"}]}},{"$replaceWith":{"$arrayElemAt":["$f",0]}}]}`,
		`{"v":[{"$addFields":{"t":{"$dateToString":{"date":"$d","format":"%Y"}},"u":{"$toUpper":"$s"},"v":{"$substrCP":["$s",1,2]}}}]}`,
		`{"v":[{"$bucket":{"groupBy":"$n","boundaries":[0,9]}},{"$sortByCount":"$count"},{"$limit":1}]}`,
		`{"v":[{"$set":{"m":{"$map":{"input":"$a","in":{"$convert":{"input":"$$this","to":"string","onError":"$s"}}}}}}]}`,
	} {
		f.Add([]byte(document(f, json)))
	}
	docs := []bson.Raw{document(f, probe), document(f, `{"_id":2}`)}
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
		p, err := query.CompilePipeline(stages, query.PipelineEnv{Env: env()})
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
