package modify_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/query/modify"
	"changerelay/services/sandbox/internal/mongodb/query/querytest"
)

// FuzzUpdate compiles and applies whatever comes as an update: no panic, and
// what it makes is a valid document with the same _id.
func FuzzUpdate(f *testing.F) {
	for _, json := range []string{
		`{"v":{"$set":{"a.1.b":1,"new.x":2},"$unset":{"s":1},"$inc":{"n":1}}}`, `{"v":{"$push":{"a":{"$each":[1],"$sort":1,"$slice":-2}}}}`,
		`{"v":{"x":1}}`, `{"v":[{"$set":{"a":{"$concatArrays":["$a",[1]]}}},{"$unset":"n"}]}`, `{"v":{"$rename":{"o.x":"p.q"},"$pull":{"a":1}}}`,
		`{"v":{"$set":{"a.$[]":1}}}`, `{"v":{"$currentDate":{"d":true},"$bit":{"n":{"xor":3}},"$min":{"k":1}}}`,
	} {
		f.Add([]byte(querytest.Document(f, json)))
	}
	doc := querytest.Document(f, querytest.Probe)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if bsonkit.Validate(raw, 50) != nil {
			t.Skip("no document")
		}
		spec, _ := bsonkit.Get(raw, "v")
		u, err := modify.Compile(spec, modify.Options{Env: querytest.Env()})
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
