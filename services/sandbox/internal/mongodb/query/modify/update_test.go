package modify_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/modify"
	"changerelay/services/sandbox/internal/mongodb/query/querytest"
)

func update(t testing.TB, json string, arrayFilters ...string) *modify.Update {
	t.Helper()
	u, err := compileUpdate(t, json, arrayFilters...)
	if err != nil {
		t.Fatalf("update %s: %v", json, err)
	}
	return u
}

func compileUpdate(t testing.TB, json string, arrayFilters ...string) (*modify.Update, error) {
	t.Helper()
	o := modify.Options{Env: querytest.Env()}
	for _, f := range arrayFilters {
		o.ArrayFilters = append(o.ArrayFilters, querytest.Document(t, f))
	}
	return modify.Compile(querytest.Value(t, json), o)
}

// deltaText writes what a change stream would say.
func deltaText(d *modify.Delta) string {
	if d == nil {
		return "nil"
	}
	return querytest.Relaxed(d.Updated) + " -" + strings.Join(d.Removed, ",")
}

type updateCase struct{ name, doc, update, want, delta string }

func checkUpdates(t *testing.T, cases []updateCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			doc := querytest.Document(t, c.doc)
			got, err := update(t, c.update).Apply(doc, nil)
			if err != nil {
				t.Fatalf("apply: %v", err)
			}
			want := querytest.Document(t, c.want)
			if !bytes.Equal(got.Doc, want) {
				t.Errorf("document: got %s, want %s", got.Doc, want)
			}
			if got.Changed != (c.delta != "nil") {
				t.Errorf("changed: got %v, want %v", got.Changed, c.delta != "nil")
			}
			if delta := deltaText(got.Delta); delta != c.delta {
				t.Errorf("delta: got %s, want %s", delta, c.delta)
			}
		})
	}
}

func TestUpdate_FieldOperators(t *testing.T) {
	t.Parallel()
	const doc = `{"_id":1,"a":{"b":{"c":1}},"arr":[{"x":1},{"x":2}],"s":"t"}`
	checkUpdates(t, []updateCase{
		{
			"set makes the documents on its way", doc, `{"$set":{"a.b.d":2,"a.e":3,"new.deep.er":4}}`,
			`{"_id":1,"a":{"b":{"c":1,"d":2},"e":3},"arr":[{"x":1},{"x":2}],"s":"t","new":{"deep":{"er":4}}}`,
			`{"a.b.d":2,"a.e":3,"new.deep.er":4} -`,
		},
		{
			"set pads arrays with nulls", doc, `{"$set":{"arr.0.y":5,"arr.3":"padded"}}`,
			`{"_id":1,"a":{"b":{"c":1}},"arr":[{"x":1,"y":5},{"x":2},null,"padded"],"s":"t"}`,
			`{"arr.0.y":5,"arr.3":"padded"} -`,
		},
		{"new fields come in the order of their names", `{"_id":1}`, `{"$set":{"zz":1,"mm":2},"$inc":{"bb":3}}`, `{"_id":1,"bb":3,"mm":2,"zz":1}`, `{"bb":3,"mm":2,"zz":1} -`},
		{"setting the same value changes nothing", `{"_id":1,"a":1}`, `{"$set":{"a":1}}`, `{"_id":1,"a":1}`, "nil"},
		{"setting the same number of another type is a change", `{"_id":1,"a":1}`, `{"$set":{"a":{"$numberLong":"1"}}}`, `{"_id":1,"a":{"$numberLong":"1"}}`, `{"a":1} -`},
		{"the _id may be set to what it is", `{"_id":1,"a":1}`, `{"$set":{"_id":1,"a":2}}`, `{"_id":1,"a":2}`, `{"a":2} -`},
		{
			"unset leaves a null in an array", doc, `{"$unset":{"a.b.c":"","arr.1":1,"s":true,"missing":"","also.missing":1}}`,
			`{"_id":1,"a":{"b":{}},"arr":[{"x":1},null]}`,
			`{} -a.b.c,arr.1,s`,
		},
		{"unset below a scalar changes nothing", `{"_id":1,"s":1}`, `{"$unset":{"s.x":1}}`, `{"_id":1,"s":1}`, "nil"},
		{"rename moves a value", `{"_id":1,"a":1,"b":2}`, `{"$rename":{"a":"c.d"}}`, `{"_id":1,"b":2,"c":{"d":1}}`, `{"c.d":1} -a`},
		{"rename replaces its target in place", `{"_id":1,"b":2,"a":1}`, `{"$rename":{"a":"b"}}`, `{"_id":1,"b":1}`, `{"b":1} -a`},
		{"rename of nothing", `{"_id":1}`, `{"$rename":{"a":"b"}}`, `{"_id":1}`, "nil"},
		{
			"current date", `{"_id":1}`, `{"$currentDate":{"d":true,"e":{"$type":"date"},"t":{"$type":"timestamp"}}}`,
			`{"_id":1,"d":{"$date":{"$numberLong":"1600000000123"}},"e":{"$date":{"$numberLong":"1600000000123"}},"t":{"$timestamp":{"t":1600000000,"i":7}}}`,
			`{"d":{"$date":"2020-09-13T12:26:40.123Z"},"e":{"$date":"2020-09-13T12:26:40.123Z"},"t":{"$timestamp":{"t":1600000000,"i":7}}} -`,
		},
		{"setOnInsert is for inserts", `{"_id":1}`, `{"$setOnInsert":{"a":1}}`, `{"_id":1}`, "nil"},
	})
}

func TestUpdate_NumberOperators(t *testing.T) {
	t.Parallel()
	checkUpdates(t, []updateCase{
		{
			"inc keeps or widens types", `{"_id":1,"i":1,"l":{"$numberLong":"1"},"d":1.5,"w":1}`, `{"$inc":{"i":1,"l":1,"d":1,"w":{"$numberLong":"1"},"new":7}}`,
			`{"_id":1,"i":2,"l":{"$numberLong":"2"},"d":2.5,"w":{"$numberLong":"2"},"new":7}`, `{"d":2.5,"i":2,"l":2,"new":7,"w":2} -`,
		},
		{"an int that overflows becomes a long", `{"_id":1,"m":2147483647}`, `{"$inc":{"m":1}}`, `{"_id":1,"m":{"$numberLong":"2147483648"}}`, `{"m":2147483648} -`},
		{"inc by nothing", `{"_id":1,"i":1}`, `{"$inc":{"i":0}}`, `{"_id":1,"i":1}`, "nil"},
		{"mul makes zeros of its type", `{"_id":1,"d":1.5}`, `{"$mul":{"d":2,"i":5,"l":{"$numberLong":"5"},"x":0.5}}`, `{"_id":1,"d":3.0,"i":0,"l":{"$numberLong":"0"},"x":0.0}`, `{"d":3.0,"i":0,"l":0,"x":0.0} -`},
		{"min and max", `{"_id":1,"lo":5,"hi":5}`, `{"$min":{"lo":3,"a":1},"$max":{"hi":4,"b":1}}`, `{"_id":1,"lo":3,"hi":5,"a":1,"b":1}`, `{"a":1,"b":1,"lo":3} -`},
		{"max goes by type first", `{"_id":1,"v":99}`, `{"$max":{"v":"a"}}`, `{"_id":1,"v":"a"}`, `{"v":"a"} -`},
		{"bit by bit", `{"_id":1,"b":12}`, `{"$bit":{"b":{"and":10,"or":3},"n":{"xor":{"$numberLong":"5"}}}}`, `{"_id":1,"b":11,"n":{"$numberLong":"5"}}`, `{"b":11,"n":5} -`},
	})
}

func TestUpdate_ArrayOperators(t *testing.T) {
	t.Parallel()
	checkUpdates(t, []updateCase{
		{"push", `{"_id":1,"a":[3]}`, `{"$push":{"a":2,"n":1}}`, `{"_id":1,"a":[3,2],"n":[1]}`, `{"a.1":2,"n":[1]} -`},
		{"push an array as one value", `{"_id":1,"a":[1]}`, `{"$push":{"a":[2,3]}}`, `{"_id":1,"a":[1,[2,3]]}`, `{"a.1":[2,3]} -`},
		{"push each", `{"_id":1,"a":[3]}`, `{"$push":{"a":{"$each":[9,8]}}}`, `{"_id":1,"a":[3,9,8]}`, `{"a.1":9,"a.2":8} -`},
		{"push nothing", `{"_id":1,"a":[3]}`, `{"$push":{"a":{"$each":[]}}}`, `{"_id":1,"a":[3]}`, "nil"},
		{"push to the front", `{"_id":1,"a":[3]}`, `{"$push":{"a":{"$each":[1,2],"$position":0}}}`, `{"_id":1,"a":[1,2,3]}`, `{"a":[1,2,3]} -`},
		{"push before the last", `{"_id":1,"a":[1,3]}`, `{"$push":{"a":{"$each":[2],"$position":-1}}}`, `{"_id":1,"a":[1,2,3]}`, `{"a":[1,2,3]} -`},
		{"push at the end by its number", `{"_id":1,"a":[1]}`, `{"$push":{"a":{"$each":[2],"$position":1}}}`, `{"_id":1,"a":[1,2]}`, `{"a":[1,2]} -`},
		{"push to an empty array", `{"_id":1,"a":[]}`, `{"$push":{"a":2}}`, `{"_id":1,"a":[2]}`, `{"a":[2]} -`},
		{"push with a slice that cuts nothing", `{"_id":1,"a":[1]}`, `{"$push":{"a":{"$each":[2],"$slice":-5}}}`, `{"_id":1,"a":[1,2]}`, `{"a.1":2} -`},
		{"sorting what is sorted counts", `{"_id":1,"a":[1,2]}`, `{"$push":{"a":{"$each":[],"$sort":1}}}`, `{"_id":1,"a":[1,2]}`, `{"a":[1,2]} -`},
		{"push behind the end", `{"_id":1,"a":[1]}`, `{"$push":{"a":{"$each":[2],"$position":9}}}`, `{"_id":1,"a":[1,2]}`, `{"a.1":2} -`},
		{"push, sort and slice", `{"_id":1,"o":[{"k":2},{"k":1}]}`, `{"$push":{"o":{"$each":[{"k":3},{"k":0}],"$sort":{"k":1},"$slice":3}}}`, `{"_id":1,"o":[{"k":0},{"k":1},{"k":2}]}`, `{"o":[{"k":0},{"k":1},{"k":2}]} -`},
		{"push and keep the last", `{"_id":1,"a":[1,2,3]}`, `{"$push":{"a":{"$each":[4],"$slice":-2}}}`, `{"_id":1,"a":[3,4]}`, `{"a":[3,4]} -`},
		{"push and sort by arrays as values", `{"_id":1,"o":[{"k":[1,9],"l":[2]},{"k":[1,3],"l":[5]}]}`, `{"$push":{"o":{"$each":[{"k":7}],"$sort":{"k":1,"l":1}}}}`, `{"_id":1,"o":[{"k":7},{"k":[1,3],"l":[5]},{"k":[1,9],"l":[2]}]}`, `{"o":[{"k":7},{"k":[1,3],"l":[5]},{"k":[1,9],"l":[2]}]} -`},
		{"push and sort by an element", `{"_id":1,"o":[{"k":[1,9]},{"k":[1,3]}]}`, `{"$push":{"o":{"$each":[{"k":[0,5]}],"$sort":{"k.1":-1}}}}`, `{"_id":1,"o":[{"k":[1,9]},{"k":[0,5]},{"k":[1,3]}]}`, `{"o":[{"k":[1,9]},{"k":[0,5]},{"k":[1,3]}]} -`},
		{"push and sort whole values down", `{"_id":1,"a":[1,"x"]}`, `{"$push":{"a":{"$each":[2],"$sort":-1}}}`, `{"_id":1,"a":["x",2,1]}`, `{"a":["x",2,1]} -`},
		{"slice to nothing", `{"_id":1,"a":[1]}`, `{"$push":{"a":{"$each":[],"$slice":0}}}`, `{"_id":1,"a":[]}`, `{"a":[]} -`},
		{"addToSet knows equal numbers", `{"_id":1,"a":[1,2]}`, `{"$addToSet":{"a":{"$numberDouble":"2"}}}`, `{"_id":1,"a":[1,2]}`, "nil"},
		{"addToSet each, each once", `{"_id":1,"a":[1]}`, `{"$addToSet":{"a":{"$each":[1,5,5]},"n":1}}`, `{"_id":1,"a":[1,5],"n":[1]}`, `{"a":[1,5],"n":[1]} -`},
		{"addToSet minds the order of fields", `{"_id":1,"a":[{"k":1,"v":2}]}`, `{"$addToSet":{"a":{"v":2,"k":1}}}`, `{"_id":1,"a":[{"k":1,"v":2},{"v":2,"k":1}]}`, `{"a":[{"k":1,"v":2},{"v":2,"k":1}]} -`},
		{"pull a value", `{"_id":1,"a":[1,2,3,2.0]}`, `{"$pull":{"a":2,"missing":1}}`, `{"_id":1,"a":[1,3]}`, `{"a":[1,3]} -`},
		{"pull by operators", `{"_id":1,"a":[1,5,"x",[9]]}`, `{"$pull":{"a":{"$gte":4}}}`, `{"_id":1,"a":[1,"x"]}`, `{"a":[1,"x"]} -`},
		{"pull by a regular expression", `{"_id":1,"a":["ab","b"]}`, `{"$pull":{"a":{"$regularExpression":{"pattern":"^a","options":""}}}}`, `{"_id":1,"a":["b"]}`, `{"a":["b"]} -`},
		{"pull documents", `{"_id":1,"o":[{"k":1,"v":"a"},{"k":3,"v":"a"},5]}`, `{"$pull":{"o":{"v":"a","k":{"$lt":3}}}}`, `{"_id":1,"o":[{"k":3,"v":"a"},5]}`, `{"o":[{"k":3,"v":"a"},5]} -`},
		{"pull documents by a logical filter", `{"_id":1,"o":[{"k":1},{"k":2}]}`, `{"$pull":{"o":{"$or":[{"k":1},{"k":9}]}}}`, `{"_id":1,"o":[{"k":2}]}`, `{"o":[{"k":2}]} -`},
		{"pull nothing", `{"_id":1,"a":[1]}`, `{"$pull":{"a":7}}`, `{"_id":1,"a":[1]}`, "nil"},
		{"pullAll", `{"_id":1,"a":[1,2,1,3]}`, `{"$pullAll":{"a":[1,9]}}`, `{"_id":1,"a":[2,3]}`, `{"a":[2,3]} -`},
		{"pop the last", `{"_id":1,"a":[1,2]}`, `{"$pop":{"a":1}}`, `{"_id":1,"a":[1]}`, `{"a":[1]} -`},
		{"pop the first", `{"_id":1,"a":[1,2]}`, `{"$pop":{"a":-1}}`, `{"_id":1,"a":[2]}`, `{"a":[2]} -`},
		{"pop of nothing", `{"_id":1,"a":[]}`, `{"$pop":{"a":1,"b":1}}`, `{"_id":1,"a":[]}`, "nil"},
	})
}

func TestUpdate_Replacement(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, doc, by, want string
		changed             bool
	}{
		{"keeps the _id", `{"_id":1,"a":1}`, `{"c":3}`, `{"_id":1,"c":3}`, true},
		{"by nothing", `{"_id":1,"a":1}`, `{}`, `{"_id":1}`, true},
		{"puts the _id first", `{"_id":1,"a":1}`, `{"c":3,"_id":1}`, `{"_id":1,"c":3}`, true},
		{"by the same bytes", `{"_id":1,"a":1}`, `{"_id":1,"a":1}`, `{"_id":1,"a":1}`, false},
		{"by the same without the _id counts", `{"_id":1,"a":1}`, `{"a":1}`, `{"_id":1,"a":1}`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			u := update(t, c.by)
			if !u.IsReplacement() || u.IsPipeline() {
				t.Fatalf("IsReplacement %v, IsPipeline %v", u.IsReplacement(), u.IsPipeline())
			}
			got, err := u.Apply(querytest.Document(t, c.doc), nil)
			if err != nil {
				t.Fatalf("apply: %v", err)
			}
			if querytest.Relaxed(got.Doc) != c.want || got.Changed != c.changed || got.Delta != nil {
				t.Errorf("got %s, changed %v, delta %s, want %s, %v, nil", querytest.Relaxed(got.Doc), got.Changed, deltaText(got.Delta), c.want, c.changed)
			}
		})
	}
}

func TestUpdate_PositionalUpdates(t *testing.T) {
	t.Parallel()
	const doc = `{"_id":1,"g":[{"id":"a","n":1},{"id":"b","n":2}],"v":[1,5,9],"m":[[1,2],[3]]}`
	for _, c := range []struct {
		name, filter, update string
		arrayFilters         []string
		delta                string
	}{
		{"the matched element", `{"g.id":"b"}`, `{"$set":{"g.$.n":20}}`, nil, `{"g.1.n":20} -`},
		{"the element of $elemMatch", `{"g":{"$elemMatch":{"id":"b","n":2}}}`, `{"$inc":{"g.$.n":1}}`, nil, `{"g.1.n":3} -`},
		{"the element of a plain array", `{"v":{"$gt":4}}`, `{"$set":{"v.$":0}}`, nil, `{"v.1":0} -`},
		{"the element of the last condition", `{"v":9,"g.id":"a"}`, `{"$unset":{"g.$":1}}`, nil, `{} -g.0`},
		{"all elements", `{}`, `{"$inc":{"g.$[].n":100,"v.$[]":1}}`, nil, `{"g":[{"id":"a","n":101},{"id":"b","n":102}],"v":[2,6,10]} -`},
		{"all of all", `{}`, `{"$inc":{"m.$[].$[]":1}}`, nil, `{"m":[[2,3],[4]]} -`},
		{"filtered elements", `{}`, `{"$set":{"v.$[big]":0,"g.$[e].hit":true}}`, []string{`{"big":{"$gte":6}}`, `{"e.id":{"$in":["a","c"]}}`}, `{"g.0":{"id":"a","n":1,"hit":true},"v.2":0} -`},
		{"a filter of two conditions", `{}`, `{"$set":{"v.$[x]":0}}`, []string{`{"$and":[{"x":{"$gt":1}},{"x":{"$lt":9}}]}`}, `{"v.1":0} -`},
		{"one element of two operators", `{}`, `{"$set":{"g.$[x].n":7},"$unset":{"g.$[y].n":1}}`, []string{`{"x.id":"a"}`, `{"y.id":"z"}`}, `{"g.0":{"id":"a","n":7}} -`},
		{"a field taken from one element", `{}`, `{"$unset":{"g.$[x].n":1}}`, []string{`{"x.id":"a"}`}, `{"g.0":{"id":"a"}} -`},
		{"an element of an array in an element", `{}`, `{"$set":{"m.$[].$[x]":0}}`, []string{`{"x":3}`}, `{"m.1":[0]} -`},
		{"only one of all becomes another", `{}`, `{"$max":{"v.$[]":4}}`, nil, `{"v.0":4} -`},
		{"an element pushed to all", `{}`, `{"$push":{"m.$[]":0}}`, nil, `{"m":[[1,2,0],[3,0]]} -`},
		{"no element fits", `{}`, `{"$set":{"v.$[x]":0}}`, []string{`{"x":{"$gt":100}}`}, `nil`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := update(t, c.update, c.arrayFilters...).Apply(querytest.Document(t, doc), querytest.Filter(t, c.filter))
			if err != nil {
				t.Fatalf("apply: %v", err)
			}
			if delta := deltaText(got.Delta); delta != c.delta {
				t.Errorf("got %s, want %s", delta, c.delta)
			}
		})
	}
}

func TestUpdate_EndsBetweenTheElementsOfAnArray(t *testing.T) {
	t.Parallel()
	stop := errors.New("stopped")
	left := 2
	env := querytest.Env()
	env.Interrupted = func() error {
		if left--; left < 0 {
			return stop
		}
		return nil
	}
	u, err := modify.Compile(querytest.Value(t, `{"$inc":{"a.$[]":1}}`), modify.Options{Env: env})
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	applied, err := u.Apply(querytest.Document(t, `{"a":[1,2]}`), nil)
	if err != nil || !applied.Changed {
		t.Errorf("two elements: got %v, changed %t, want a change", err, applied.Changed)
	}
	left = 2
	if _, err := u.Apply(querytest.Document(t, `{"a":[1,2,3]}`), nil); !errors.Is(err, stop) {
		t.Errorf("three elements: got %v, want %v", err, stop)
	}
}

func TestUpdate_UpdatePipelines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, doc, update, want string
		changed                 bool
	}{
		{"set by an expression", `{"_id":1,"p":5}`, `[{"$set":{"p":{"$add":["$p",1]},"at":"$$NOW"}}]`, `{"_id":1,"p":6,"at":{"$date":"2020-09-13T12:26:40.123Z"}}`, true},
		{"the same again", `{"_id":1,"p":5}`, `[{"$set":{"p":"$p"}}]`, `{"_id":1,"p":5}`, false},
		{"remove a field", `{"_id":1,"p":5}`, `[{"$set":{"p":"$$REMOVE","q":1}}]`, `{"_id":1,"q":1}`, true},
		{"no stages", `{"_id":1,"p":5}`, `[]`, `{"_id":1,"p":5}`, false},
		{"unset and project", `{"_id":1,"p":5,"q":6}`, `[{"$unset":"p"},{"$project":{"q":1}}]`, `{"_id":1,"q":6}`, true},
		{"a root without an _id keeps it", `{"_id":1,"p":{"x":1}}`, `[{"$replaceWith":"$p"}]`, `{"_id":1,"x":1}`, true},
		{"guarded by a condition, met", `{"_id":1,"p":5}`, `[{"$replaceWith":{"$cond":[{"$lt":["$p",6]},{"_id":"$_id","p":6},"$$ROOT"]}}]`, `{"_id":1,"p":6}`, true},
		{"guarded by a condition, not met", `{"_id":1,"p":7}`, `[{"$replaceWith":{"$cond":[{"$lt":["$p",6]},{"_id":"$_id","p":6},"$$ROOT"]}}]`, `{"_id":1,"p":7}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			u := update(t, c.update)
			if !u.IsPipeline() || u.IsReplacement() {
				t.Fatalf("IsPipeline %v, IsReplacement %v", u.IsPipeline(), u.IsReplacement())
			}
			got, err := u.Apply(querytest.Document(t, c.doc), nil)
			if err != nil {
				t.Fatalf("apply: %v", err)
			}
			if querytest.Relaxed(got.Doc) != c.want || got.Changed != c.changed || got.Delta != nil {
				t.Errorf("got %s, changed %v, delta %s, want %s, %v, nil", querytest.Relaxed(got.Doc), got.Changed, deltaText(got.Delta), c.want, c.changed)
			}
		})
	}
}

func TestUpdate_UpdateConstantsAreVariables(t *testing.T) {
	t.Parallel()
	e := querytest.Env()
	e.Let = []bson.Raw{querytest.Document(t, `{"step":9}`)}
	u, err := modify.Compile(querytest.Value(t, `[{"$set":{"q":"$$step"}}]`), modify.Options{Env: e})
	if err != nil {
		t.Fatal(err)
	}
	got, err := u.Apply(querytest.Document(t, `{"_id":1}`), nil)
	if err != nil || querytest.Relaxed(got.Doc) != `{"_id":1,"q":9}` {
		t.Errorf("got %s, %v", got.Doc, err)
	}
}

func TestUpdate_AnUpdatedDocumentSharesNoMemoryWithTheUpdate(t *testing.T) {
	t.Parallel()
	for _, json := range []string{`{"$set":{"a":"xyz"}}`, `{"a":"xyz"}`, `[{"$set":{"a":"xyz"}}]`} {
		spec := querytest.Value(t, json)
		u, err := modify.Compile(spec, modify.Options{Env: querytest.Env()})
		if err != nil {
			t.Fatal(err)
		}
		got, err := u.Apply(querytest.Document(t, `{"_id":1}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		inserted, err := u.Upsert(nil)
		if err != nil {
			t.Fatal(err)
		}
		before, beforeInserted := bytes.Clone(got.Doc), bytes.Clone(inserted)
		for i := range spec.Value {
			spec.Value[i] = 0xee
		}
		if !bytes.Equal(got.Doc, before) || !bytes.Equal(inserted, beforeInserted) {
			t.Errorf("%s: the result changed with the update's bytes", json)
		}
	}
}

func TestUpdate_UpdatesAreRefusedWhenCompiled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		update       string
		arrayFilters []string
		code         mongoerr.Code
	}{
		{`5`, nil, mongoerr.FailedToParse},
		{`{"$nosuch":{"a":1}}`, nil, mongoerr.FailedToParse},
		{`{"$set":{"a":1},"b":1}`, nil, mongoerr.FailedToParse},
		{`{"$set":{}}`, nil, mongoerr.FailedToParse},
		{`{"$set":5}`, nil, mongoerr.FailedToParse},
		{`{"a":1,"$set":{"b":1}}`, nil, mongoerr.DollarPrefixedFieldName},
		{`{"a":{"$b":1}}`, nil, mongoerr.DollarPrefixedFieldName},
		{`{"$set":{"":1}}`, nil, mongoerr.EmptyFieldName},
		{`{"$set":{"a.":1}}`, nil, mongoerr.EmptyFieldName},
		{`{"$set":{"a.$b":1}}`, nil, mongoerr.DollarPrefixedFieldName},
		{`{"$set":{"$a":1}}`, nil, mongoerr.DollarPrefixedFieldName},
		{`{"$set":{"$":1}}`, nil, mongoerr.BadValue},
		{`{"$set":{"a.$.b.$":1}}`, nil, mongoerr.BadValue},
		{`{"$set":{"a":1,"a.b":1}}`, nil, mongoerr.ConflictingUpdateOperators},
		{`{"$set":{"a.b":1},"$unset":{"a":1}}`, nil, mongoerr.ConflictingUpdateOperators},
		{`{"$set":{"a":1},"$inc":{"a":1}}`, nil, mongoerr.ConflictingUpdateOperators},
		{`{"$set":{"a":1,"a-b":1,"a.b":1}}`, nil, mongoerr.ConflictingUpdateOperators},
		{`{"$rename":{"a":"b"},"$set":{"b":1}}`, nil, mongoerr.ConflictingUpdateOperators},
		{`{"$rename":{"a":"b"},"$set":{"a.c":1}}`, nil, mongoerr.ConflictingUpdateOperators},
		{`{"$rename":{"a":"a"}}`, nil, mongoerr.BadValue},
		{`{"$rename":{"a":"a.b"}}`, nil, mongoerr.ConflictingUpdateOperators},
		{`{"$rename":{"a":1}}`, nil, mongoerr.BadValue},
		{`{"$rename":{"a.$[]":"b"}}`, nil, mongoerr.BadValue},
		{`{"$rename":{"a":"b.$[]"}}`, nil, mongoerr.BadValue},
		{`{"$inc":{"a":"1"}}`, nil, mongoerr.TypeMismatch},
		{`{"$mul":{"a":null}}`, nil, mongoerr.TypeMismatch},
		{`{"$bit":{"a":1}}`, nil, mongoerr.BadValue},
		{`{"$bit":{"a":{}}}`, nil, mongoerr.BadValue},
		{`{"$bit":{"a":{"nand":1}}}`, nil, mongoerr.BadValue},
		{`{"$bit":{"a":{"and":1.5}}}`, nil, mongoerr.BadValue},
		{`{"$currentDate":{"a":1}}`, nil, mongoerr.BadValue},
		{`{"$currentDate":{"a":{"$type":"year"}}}`, nil, mongoerr.BadValue},
		{`{"$currentDate":{"a":{"$typo":"date"}}}`, nil, mongoerr.BadValue},
		{`{"$push":{"a":{"$each":1}}}`, nil, mongoerr.BadValue},
		{`{"$push":{"a":{"$each":[1],"$nosuch":1}}}`, nil, mongoerr.BadValue},
		{`{"$push":{"a":{"$each":[1],"$slice":"x"}}}`, nil, mongoerr.BadValue},
		{`{"$push":{"a":{"$each":[1],"$position":1.5}}}`, nil, mongoerr.BadValue},
		{`{"$push":{"a":{"$each":[1],"$sort":2}}}`, nil, mongoerr.BadValue},
		{`{"$push":{"a":{"$each":[1],"$sort":{"k":5}}}}`, nil, mongoerr.BadValue},
		{`{"$addToSet":{"a":{"$each":1}}}`, nil, mongoerr.TypeMismatch},
		{`{"$addToSet":{"a":{"$each":[1],"x":1}}}`, nil, mongoerr.BadValue},
		{`{"$pop":{"a":2}}`, nil, mongoerr.FailedToParse},
		{`{"$pop":{"a":"x"}}`, nil, mongoerr.FailedToParse},
		{`{"$pullAll":{"a":1}}`, nil, mongoerr.BadValue},
		{`{"$pull":{"a":{"$nosuch":1}}}`, nil, mongoerr.BadValue},
		{`{"$set":{"v.$[x]":1}}`, nil, mongoerr.BadValue},
		{`{"$set":{"v.0":1}}`, []string{`{"x":1}`}, mongoerr.FailedToParse},
		{`{"$set":{"v.$[x]":1}}`, []string{`{"x":1}`, `{"x":2}`}, mongoerr.FailedToParse},
		{`{"$set":{"v.$[x]":1}}`, []string{`{"x":1,"y":1}`}, mongoerr.FailedToParse},
		{`{"$set":{"v.$[x]":1}}`, []string{`{}`}, mongoerr.FailedToParse},
		{`{"$set":{"v.$[X]":1}}`, []string{`{"X":1}`}, mongoerr.BadValue},
		{`{"a":1}`, []string{`{"x":1}`}, mongoerr.FailedToParse},
		{`[{"$set":{"a":1}}]`, []string{`{"x":1}`}, mongoerr.FailedToParse},
		{`[{"$match":{"a":1}}]`, nil, mongoerr.InvalidOptions},
		{`[{"$group":{"_id":1}}]`, nil, mongoerr.InvalidOptions},
		{`[1]`, nil, mongoerr.TypeMismatch},
	} {
		t.Run(c.update+strings.Join(c.arrayFilters, " "), func(t *testing.T) {
			t.Parallel()
			_, err := compileUpdate(t, c.update, c.arrayFilters...)
			querytest.CheckCode(t, err, c.code)
		})
	}
}

func TestUpdate_UpdatesAreRefusedByTheDocument(t *testing.T) {
	t.Parallel()
	const doc = `{"_id":1,"s":"x","n":null,"i":1,"l":{"$numberLong":"9223372036854775807"},"a":[1,[2]],"o":{"x":1},"g":[{"x":1}]}`
	for _, c := range []struct {
		update string
		code   mongoerr.Code
	}{
		{`{"$set":{"_id":2}}`, mongoerr.ImmutableField},
		{`{"$unset":{"_id":1}}`, mongoerr.ImmutableField},
		{`{"$rename":{"_id":"b"}}`, mongoerr.ImmutableField},
		{`{"_id":2}`, mongoerr.ImmutableField},
		{`[{"$set":{"_id":2}}]`, mongoerr.ImmutableField},
		{`{"$set":{"s.q":1}}`, mongoerr.PathNotViable},
		{`{"$set":{"s.q.r":1}}`, mongoerr.PathNotViable},
		{`{"$inc":{"a.x":1}}`, mongoerr.PathNotViable},
		{`{"$set":{"o":{"$x":1}}}`, mongoerr.DollarPrefixedFieldName},
		{`{"$push":{"a":{"$x":1}}}`, mongoerr.DollarPrefixedFieldName},
		{`{"$set":{"a.2000000":1}}`, mongoerr.CannotBackfillArray},
		{`{"$inc":{"s":1}}`, mongoerr.TypeMismatch},
		{`{"$inc":{"n":1}}`, mongoerr.TypeMismatch},
		{`{"$inc":{"l":1}}`, mongoerr.BadValue},
		{`{"$mul":{"l":2}}`, mongoerr.BadValue},
		{`{"$bit":{"s":{"and":1}}}`, mongoerr.BadValue},
		{`{"$push":{"s":1}}`, mongoerr.BadValue},
		{`{"$addToSet":{"s":1}}`, mongoerr.BadValue},
		{`{"$pull":{"s":1}}`, mongoerr.BadValue},
		{`{"$pullAll":{"s":[1]}}`, mongoerr.BadValue},
		{`{"$pop":{"s":1}}`, mongoerr.TypeMismatch},
		{`{"$pull":{"s.x":1}}`, mongoerr.PathNotViable},
		{`{"$pullAll":{"s.x":[1]}}`, mongoerr.PathNotViable},
		{`{"$pop":{"a.x":1}}`, mongoerr.PathNotViable},
		{`{"$rename":{"a.0":"b"}}`, mongoerr.BadValue},
		{`{"$rename":{"s":"g.0.y"}}`, mongoerr.BadValue},
		{`{"$set":{"a.$":1}}`, mongoerr.BadValue},
		{`{"$set":{"s.$[]":1}}`, mongoerr.BadValue},
		{`{"$set":{"missing.$[]":1}}`, mongoerr.BadValue},
		{`{"$set":{"a.$[].x":1}}`, mongoerr.PathNotViable},
		{`{"$set":{"a.$[]":1,"a.0":2}}`, mongoerr.ConflictingUpdateOperators},
		{`{"$set":{"g.$[].x":1,"g.0":2}}`, mongoerr.ConflictingUpdateOperators},
		{`{"$set":{"g.$[]":{},"g.0.x":2}}`, mongoerr.ConflictingUpdateOperators},
		{`[{"$set":{"p":{"$add":["$s",1]}}}]`, 16554},
		{`[{"$replaceWith":"$s"}]`, 40228},
	} {
		t.Run(c.update, func(t *testing.T) {
			t.Parallel()
			before := querytest.Document(t, doc)
			got, err := update(t, c.update).Apply(before, querytest.Filter(t, `{}`))
			querytest.CheckCode(t, err, c.code)
			if !bytes.Equal(got.Doc, before) || got.Changed {
				t.Errorf("a refused update gave %s, changed %v", got.Doc, got.Changed)
			}
		})
	}
}

func TestUpdate_TooDeepADocumentIsRefused(t *testing.T) {
	t.Parallel()
	doc := querytest.Document(t, `{"_id":1}`)
	nested := func(depth int) string { return strings.Repeat(`{"d":`, depth) + `1` + strings.Repeat(`}`, depth) }
	for _, c := range []struct {
		name, update string
		code         mongoerr.Code
	}{
		{"a path of 180 parts", `{"$set":{"` + strings.Repeat("a.", 179) + `a":1}}`, 0},
		{"a value below the limit", `{"$set":{"a":` + nested(150) + `}}`, 0},
		{"a value beyond the limit", `{"$set":{"a":` + nested(190) + `}}`, mongoerr.Overflow},
		{"a value beyond the limit at its path", `{"$set":{"` + strings.Repeat("a.", 99) + `a":` + nested(90) + `}}`, mongoerr.Overflow},
		{"a pipeline", `[{"$set":{"a":{"$literal":` + nested(190) + `}}}]`, mongoerr.Overflow},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := update(t, c.update).Apply(doc, nil)
			querytest.CheckCode(t, err, c.code)
		})
	}
	_, err := compileUpdate(t, `{"a":`+nested(190)+`}`)
	querytest.CheckCode(t, err, mongoerr.Overflow)
}

func TestUpdate_TooLargeAnUpsertIsRefused(t *testing.T) {
	t.Parallel()
	u := update(t, `{"$set":{"a":"`+strings.Repeat("y", 9<<20)+`"}}`)
	_, err := u.Upsert(querytest.Filter(t, `{"_id":1,"b":"`+strings.Repeat("x", 8<<20)+`"}`))
	querytest.CheckCode(t, err, 17420)
}

func TestUpdate_TooLargeADocumentIsRefused(t *testing.T) {
	t.Parallel()
	b := bsonkit.NewBuilder(nil)
	b.Append("_id", bsonkit.Int32(1))
	b.Append("big", bsonkit.String(strings.Repeat("x", 16<<20-100)))
	doc := bson.Raw(b.Finish())
	if _, err := update(t, `{"$set":{"a":1}}`).Apply(doc, nil); err != nil {
		t.Errorf("just below the limit: %v", err)
	}
	_, err := update(t, `{"$set":{"a":"`+strings.Repeat("y", 100)+`"}}`).Apply(doc, nil)
	querytest.CheckCode(t, err, 17419)
}
