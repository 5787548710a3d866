package query_test

import (
	"bytes"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query"
	"changerelay/services/sandbox/internal/mongodb/query/querytest"
)

func compiledSort(t testing.TB, json string) *query.Sort {
	t.Helper()
	s, err := query.CompileSort(querytest.Document(t, json))
	if err != nil {
		t.Fatalf("sort %s: %v", json, err)
	}
	return s
}

func sortKey(t testing.TB, s *query.Sort, doc bson.Raw) []byte {
	t.Helper()
	key, err := s.AppendKey(nil, doc)
	if err != nil {
		t.Fatalf("key of %s: %v", doc, err)
	}
	return key
}

func TestSort_Sorting(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, sort, docs, want string }{
		{"ascending", `{"a":1}`, `[{"a":2},{"a":1}]`, `{"a":1} {"a":2}`},
		{"descending", `{"a":-1}`, `[{"a":1},{"a":2}]`, `{"a":2} {"a":1}`},
		{"types in order, missing as null", `{"a":1}`, `[{"a":"x"},{"a":1},{},{"a":null},{"a":true}]`, `{} {"a":null} {"a":1} {"a":"x"} {"a":true}`},
		{"a second field", `{"a":1,"b":-1}`, `[{"a":1,"b":1},{"a":0,"b":1},{"a":1,"b":2}]`, `{"a":0,"b":1} {"a":1,"b":2} {"a":1,"b":1}`},
		{"a dotted field", `{"a.b":1}`, `[{"a":{"b":2}},{"a":{"b":1}}]`, `{"a":{"b":1}} {"a":{"b":2}}`},
		{"arrays by their least element", `{"a":1}`, `[{"a":[3,9]},{"a":[5,1]}]`, `{"a":[5,1]} {"a":[3,9]}`},
		{"arrays by their greatest element", `{"a":-1}`, `[{"a":[5,1]},{"a":[3,9]}]`, `{"a":[3,9]} {"a":[5,1]}`},
		{"empty arrays before null", `{"a":1}`, `[{"a":null},{"a":[]}]`, `{"a":[]} {"a":null}`},
		{"an element that is no document counts as null", `{"a.b":1}`, `[{"a":{"b":1}},{"a":[5,{"b":2}]}]`, `{"a":[5,{"b":2}]} {"a":{"b":1}}`},
		{"fields of one array by the first of its compound keys", `{"a.b":-1,"a.c":1}`, `[{"a":[{"b":2,"c":5},{"b":1,"c":0}]},{"a":[{"b":2,"c":4}]}]`, `{"a":[{"b":2,"c":4}]} {"a":[{"b":2,"c":5},{"b":1,"c":0}]}`},
		{"an array with its own fields", `{"a":1,"a.b":1}`, `[{"a":[{"b":2}]},{"a":[{"b":1},{"b":3}]}]`, `{"a":[{"b":1},{"b":3}]} {"a":[{"b":2}]}`},
		{"equal ones as they came", `{"a":1}`, `[{"a":1,"n":1},{"a":1.0,"n":2}]`, `{"a":1,"n":1} {"a":1.0,"n":2}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			docs := querytest.Documents(t, c.docs)
			s := compiledSort(t, c.sort)
			slices.SortStableFunc(docs, func(a, b bson.Raw) int { return bytes.Compare(sortKey(t, s, a), sortKey(t, s, b)) })
			if got := querytest.Relaxed(docs...); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestSort_SortsAreRefused(t *testing.T) {
	t.Parallel()
	for json, code := range map[string]mongoerr.Code{
		`{"a":2}`:                           15975,
		`{"a":"x"}`:                         15974,
		`{"a":{"b":1}}`:                     17312,
		`{"a":{"$meta":"x"}}`:               31138,
		`{"a":{"$meta":5}}`:                 31138,
		`{"a":{"$meta":"textScore","b":1}}`: 9,
		`{"a":{"$meta":"textScore"}}`:       40218,
		`{"a":{"$meta":"indexKey"}}`:        31138,
		`{"":1}`:                            40352,
		`{"a.":1}`:                          40353,
		`{"a..b":1}`:                        15998,
		`{"$a":1}`:                          16410,
	} {
		t.Run(json, func(t *testing.T) {
			t.Parallel()
			_, err := query.CompileSort(querytest.Document(t, json))
			querytest.CheckCode(t, err, code)
		})
	}
}

func TestSort_EmptySortIsNone(t *testing.T) {
	t.Parallel()
	s := compiledSort(t, `{}`)
	if s != nil {
		t.Fatalf("got %v, want nil", s)
	}
	if key := sortKey(t, s, querytest.Document(t, `{"a":1}`)); len(key) != 0 || s.Fields() != nil {
		t.Errorf("a nil sort orders documents: %x, %v", key, s.Fields())
	}
}
