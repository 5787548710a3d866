package query_test

import (
	"bytes"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

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
		{"equal ones as they came", `{"a":1}`, `[{"a":1,"n":1},{"a":1.0,"n":2}]`, `{"a":1,"n":1} {"a":1.0,"n":2}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			docs := querytest.Documents(t, c.docs)
			slices.SortStableFunc(docs, compiledSort(t, c.sort).Compare)
			if got := querytest.Relaxed(docs...); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestSort_SortKeysAgreeWithCompare(t *testing.T) {
	t.Parallel()
	s := compiledSort(t, `{"a":1,"b":-1}`)
	content := rapid.SampledFrom([]string{`1`, `2`, `"x"`, `null`, `[]`, `[1,2]`, `{"c":1}`, `2.5`})
	draw := func(rt *rapid.T, name string) bson.Raw {
		return querytest.Document(t, `{"a":`+content.Draw(rt, name+" a")+`,"b":`+content.Draw(rt, name+" b")+`}`)
	}
	rapid.Check(t, func(rt *rapid.T) {
		x, y := draw(rt, "x"), draw(rt, "y")
		if got, want := bytes.Compare(s.AppendKey(nil, x), s.AppendKey(nil, y)), s.Compare(x, y); got != want {
			rt.Fatalf("keys of %s and %s: got %d, want %d", x, y, got, want)
		}
	})
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
	if c := s.Compare(querytest.Document(t, `{"a":1}`), querytest.Document(t, `{"a":2}`)); c != 0 || s.Fields() != nil {
		t.Errorf("a nil sort orders documents: %d, %v", c, s.Fields())
	}
}
