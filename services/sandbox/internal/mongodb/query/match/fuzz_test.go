package match_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/query/match"
	"changerelay/services/sandbox/internal/mongodb/query/querytest"
)

// FuzzCompile compiles whatever document comes as a filter: no panic, and
// a match, if there is one, within the filter's own bounds.
func FuzzCompile(f *testing.F) {
	for _, json := range []string{
		`{"a":1}`, `{"a":{"$in":[1,"x",null]},"n":{"$gt":1,"$lte":9}}`, `{"$or":[{"s":{"$regex":"^t","$options":"i"}},{"n":{"$mod":[5,0]}}]}`,
		`{"a":{"$elemMatch":{"b":{"$all":[2]}}}}`, `{"n":{"$not":{"$type":["int",2]}}}`, `{"n":{"$bitsAllSet":[0,2]}}`,
		`{"$expr":{"$and":[{"$gt":["$n",1]},{"$eq":[{"$size":"$a"},3]}]}}`,
		`{"$expr":{"$reduce":{"input":{"$range":[0,9]},"initialValue":0,"in":{"$add":["$$value","$$this"]}}}}`,
	} {
		f.Add([]byte(querytest.Document(f, json)))
	}
	doc := querytest.Document(f, querytest.Probe)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if bsonkit.Validate(raw, 50) != nil {
			t.Skip("no document")
		}
		compiled, err := match.Compile(raw, querytest.Env())
		if err != nil {
			return
		}
		ok, err := compiled.Match(doc)
		if err != nil || !ok {
			return
		}
		for _, path := range []string{"a", "n", "s", "o.x"} {
			values, multikey := bsonkit.IndexValues(doc, path)
			ranges := compiled.Bounds(path, multikey).Ranges(false)
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
