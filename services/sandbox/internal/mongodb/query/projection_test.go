package query_test

import (
	"testing"

	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query"
	"changerelay/services/sandbox/internal/mongodb/query/querytest"
)

func TestProjection_Projections(t *testing.T) {
	t.Parallel()
	const doc = `{"_id":1,"a":{"b":1,"c":2},"l":[1,2,3,4],"o":[{"k":1,"v":"x"},{"k":2,"v":"y"}],"s":"t"}`
	for _, c := range []struct{ name, filter, projection, want string }{
		{"nothing said", `{}`, `{}`, doc},
		{"inclusion", `{}`, `{"a.b":1,"s":1}`, `{"_id":1,"a":{"b":1},"s":"t"}`},
		{"inclusion in the document's order", `{}`, `{"s":1,"l":true}`, `{"_id":1,"l":[1,2,3,4],"s":"t"}`},
		{"inclusion without the _id", `{}`, `{"_id":0,"s":1}`, `{"s":"t"}`},
		{"only the _id", `{}`, `{"_id":1}`, `{"_id":1}`},
		{"all but the _id", `{}`, `{"_id":0}`, `{"a":{"b":1,"c":2},"l":[1,2,3,4],"o":[{"k":1,"v":"x"},{"k":2,"v":"y"}],"s":"t"}`},
		{"exclusion", `{}`, `{"a.b":0,"l":0,"o":0}`, `{"_id":1,"a":{"c":2},"s":"t"}`},
		{"exclusion with the _id kept", `{}`, `{"_id":1,"a":0,"l":0,"o":0}`, `{"_id":1,"s":"t"}`},
		{"exclusion inside an array", `{}`, `{"o.v":0,"a":0,"l":0}`, `{"_id":1,"o":[{"k":1},{"k":2}],"s":"t"}`},
		{"inclusion inside an array", `{}`, `{"o.v":1}`, `{"_id":1,"o":[{"v":"x"},{"v":"y"}]}`},
		{"inclusion below a scalar", `{}`, `{"s.x":1}`, `{"_id":1}`},
		{"inclusion drops scalars of an array", `{}`, `{"l.x":1}`, `{"_id":1,"l":[]}`},
		{"the nested form", `{}`, `{"a":{"c":1}}`, `{"_id":1,"a":{"c":2}}`},
		{"slice keeps the rest", `{}`, `{"l":{"$slice":2}}`, `{"_id":1,"a":{"b":1,"c":2},"l":[1,2],"o":[{"k":1,"v":"x"},{"k":2,"v":"y"}],"s":"t"}`},
		{"slice with inclusion", `{}`, `{"l":{"$slice":-1},"s":1}`, `{"_id":1,"l":[4],"s":"t"}`},
		{"slice with exclusion", `{}`, `{"l":{"$slice":[1,2]},"a":0,"o":0}`, `{"_id":1,"l":[2,3],"s":"t"}`},
		{"slice from behind the start", `{}`, `{"l":{"$slice":[-3,2]},"s":1}`, `{"_id":1,"l":[2,3],"s":"t"}`},
		{"elemMatch", `{}`, `{"o":{"$elemMatch":{"k":2}}}`, `{"_id":1,"o":[{"k":2,"v":"y"}]}`},
		{"elemMatch on values", `{}`, `{"l":{"$elemMatch":{"$gt":2}}}`, `{"_id":1,"l":[3]}`},
		{"elemMatch of nothing", `{}`, `{"o":{"$elemMatch":{"k":9}},"s":1}`, `{"_id":1,"s":"t"}`},
		{"positional", `{"o.k":2}`, `{"o.$":1}`, `{"_id":1,"o":[{"k":2,"v":"y"}]}`},
		{"positional on values", `{"l":{"$gte":3}}`, `{"l.$":1,"s":1}`, `{"_id":1,"l":[3],"s":"t"}`},
		{"an expression", `{}`, `{"sum":{"$add":["$a.b","$a.c"]},"s":1}`, `{"_id":1,"s":"t","sum":3}`},
		{"an expression that is missing", `{}`, `{"x":"$nosuch","s":1}`, `{"_id":1,"s":"t"}`},
		{"a computed field of a document", `{}`, `{"a.b":1,"a.d":{"$add":["$a.c",1]}}`, `{"_id":1,"a":{"b":1,"d":3}}`},
		{"a computed field of each element", `{}`, `{"o.k":1,"o.n":{"$size":"$l"}}`, `{"_id":1,"o":[{"k":1,"n":4},{"k":2,"n":4}]}`},
		{"a computed field in place of a scalar", `{}`, `{"s.n":"$a.b"}`, `{"_id":1,"s":{"n":1}}`},
		{"a literal", `{}`, `{"x":{"$literal":1},"y":"z"}`, `{"_id":1,"x":1,"y":"z"}`},
		{"the expression $slice", `{}`, `{"l":{"$slice":["$l",1]}}`, `{"_id":1,"l":[1]}`},
		{"a computed _id", `{}`, `{"_id":"$s","l":{"$size":"$l"}}`, `{"_id":"t","l":4}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, err := query.CompileProjection(querytest.Document(t, c.projection), querytest.Filter(t, c.filter), querytest.Env())
			if err != nil {
				t.Fatalf("compile: %v", err)
			}
			got, err := p.Apply(querytest.Document(t, doc))
			if err != nil {
				t.Fatalf("apply: %v", err)
			}
			if querytest.Relaxed(got) != c.want {
				t.Errorf("got %s, want %s", querytest.Relaxed(got), c.want)
			}
		})
	}
}

func TestProjection_ProjectionsAreRefused(t *testing.T) {
	t.Parallel()
	for json, code := range map[string]mongoerr.Code{
		`{"a":1,"b":0}`:                      31254,
		`{"a":0,"b":1}`:                      31253,
		`{"a":1,"a.b":1}`:                    31249,
		`{"a.b":1,"a":1}`:                    31250,
		`{"a":{}}`:                           51270,
		`{"a":{"$nosuch":1}}`:                31325,
		`{"a":0,"b":{"$add":[1,1]}}`:         31252,
		`{"a.$":0}`:                          31395,
		`{"a.$":1,"b.$":1}`:                  31276,
		`{"a.$":"x"}`:                        31308,
		`{"a.$":{"b":1}}`:                    31271,
		`{"a.$.b":1}`:                        31394,
		`{"a":0,"b":"x"}`:                    31310,
		`{"a":0,"b":["$c"]}`:                 31310,
		`{"a":{"$slice":1,"b":1}}`:           16410,
		`{"b":0,"a":{"$slice":1,"b":1}}`:     16410,
		`{"a.b":{"$elemMatch":{"c":1}}}`:     31275,
		`{"b":0,"a":{"$elemMatch":{"c":1}}}`: 31253,
		`{"l":{"$slice":"x"}}`:               28667,
		`{"l":{"$slice":[1,0]}}`:             28724,
		`{"l":{"$slice":[1,2,3]}}`:           28724,
		`{"l":{"$slice":[1]}}`:               28667,
		`{"l":{"$elemMatch":5}}`:             31274,
		`{"l":{"$meta":"textScore"}}`:        40218,
		`{"l":{"$meta":"sortKey"}}`:          17308,
		`{"l":{"$meta":"recordId"}}`:         17308,
		`{"l":{"$meta":"indexKey"}}`:         17308,
		`{"":1}`:                             40352,
		`{"a..b":1}`:                         15998,
	} {
		t.Run(json, func(t *testing.T) {
			t.Parallel()
			_, err := query.CompileProjection(querytest.Document(t, json), nil, querytest.Env())
			querytest.CheckCode(t, err, code)
		})
	}
}

func TestProjection_PositionalProjectionNeedsAMatchedElement(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		filter string
		code   mongoerr.Code
	}{
		{`{}`, 51246},
		{`{"long":5}`, 51247},
	} {
		p, err := query.CompileProjection(querytest.Document(t, `{"l.$":1}`), querytest.Filter(t, c.filter), querytest.Env())
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Apply(querytest.Document(t, `{"l":[1],"long":[1,2,5]}`))
		querytest.CheckCode(t, err, c.code)
	}
}
