// Package querytest has what the tests of the query language share: documents
// written as extended JSON, and checks of errors.
package querytest

import (
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

// Document reads relaxed or canonical extended JSON.
func Document(t testing.TB, json string) bson.Raw {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(json), false, &d); err != nil {
		t.Fatalf("extended JSON %s: %v", json, err)
	}
	raw, err := bson.Marshal(d)
	if err != nil {
		t.Fatalf("marshal %s: %v", json, err)
	}
	return raw
}

// Value reads one value of extended JSON.
func Value(t testing.TB, json string) bson.RawValue {
	t.Helper()
	v, _ := bsonkit.Get(Document(t, `{"v":`+json+`}`), "v")
	return v
}

// Documents reads an array of documents.
func Documents(t testing.TB, json string) []bson.Raw {
	t.Helper()
	var docs []bson.Raw
	for _, v := range bsonkit.Values(Value(t, json)) {
		docs = append(docs, v.Value)
	}
	return docs
}

// Relaxed writes documents as relaxed extended JSON.
func Relaxed(docs ...bson.Raw) string {
	var parts []string
	for _, doc := range docs {
		json, err := bson.MarshalExtJSON(doc, false, false)
		if err != nil {
			return err.Error()
		}
		parts = append(parts, string(json))
	}
	return strings.Join(parts, " ")
}

// Env is a clock that stands still.
func Env() expression.Env {
	return expression.Env{
		Now:         time.UnixMilli(1_600_000_000_123).UTC(),
		ClusterTime: bson.Timestamp{T: 1_600_000_000, I: 7},
	}
}

// CheckCode wants an error of that code; 0 is none.
func CheckCode(t testing.TB, err error, want mongoerr.Code) {
	t.Helper()
	got := mongoerr.Code(0)
	if err != nil {
		got = mongoerr.From(err).Code
	}
	if got != want {
		t.Errorf("error: got %v, want code %d", err, want)
	}
}

// Probe has something for most operators to look at.
const Probe = `{"_id":1,"a":[1,{"b":[2,"x"]},[3]],"n":5,"s":"text","o":{"x":{"y":null}},"d":{"$date":{"$numberLong":"5"}}}`

// Filter compiles a filter.
func Filter(t testing.TB, json string) *match.Filter {
	t.Helper()
	f, err := match.Compile(Document(t, json), Env())
	if err != nil {
		t.Fatalf("filter %s: %v", json, err)
	}
	return f
}
