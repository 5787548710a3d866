package query_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/mongoerr"
	"changerelay/services/sandbox/internal/query"
)

// document reads relaxed or canonical extended JSON.
func document(t testing.TB, json string) bson.Raw {
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

// value reads one value of extended JSON.
func value(t testing.TB, json string) bson.RawValue {
	t.Helper()
	v, _ := bsonkit.Get(document(t, `{"v":`+json+`}`), "v")
	return v
}

func documentsOf(t testing.TB, json string) []bson.Raw {
	t.Helper()
	var docs []bson.Raw
	for _, v := range bsonkit.Values(value(t, json)) {
		docs = append(docs, v.Value)
	}
	return docs
}

// relaxed writes documents as relaxed extended JSON.
func relaxed(docs ...bson.Raw) string {
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

func filter(t testing.TB, json string) *query.Filter {
	t.Helper()
	f, err := query.CompileFilter(document(t, json), env())
	if err != nil {
		t.Fatalf("filter %s: %v", json, err)
	}
	return f
}

func env() query.Env {
	return query.Env{
		Now:         time.UnixMilli(1_600_000_000_123).UTC(),
		ClusterTime: bson.Timestamp{T: 1_600_000_000, I: 7},
	}
}

// checkCode wants an error of that code; 0 is none.
func checkCode(t testing.TB, err error, want mongoerr.Code) {
	t.Helper()
	got := mongoerr.Code(0)
	if err != nil {
		got = mongoerr.From(err).Code
	}
	if got != want {
		t.Errorf("error: got %v, want code %d", err, want)
	}
}

// matching lists the _ids of the documents that match.
func matching(t testing.TB, f *query.Filter, docs []bson.Raw) string {
	t.Helper()
	var ids []string
	for _, doc := range docs {
		ok, err := f.Match(doc)
		if err != nil {
			t.Fatalf("match %s: %v", doc, err)
		}
		if ok {
			id, _ := bsonkit.Get(doc, "_id")
			ids = append(ids, bsonkit.Describe(id))
		}
	}
	slices.Sort(ids)
	return strings.NewReplacer(`{"$numberInt":"`, "", `"}`, "").Replace(strings.Join(ids, " "))
}
