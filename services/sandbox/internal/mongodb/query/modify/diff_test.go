package modify_test

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
	"changerelay/services/sandbox/internal/mongodb/query/modify"
	"changerelay/services/sandbox/internal/mongodb/query/querytest"
)

// becomes runs a pipeline that makes one document of another, as since 5.0.
func becomes(t rapid.TB, before, after bson.Raw) modify.Applied {
	t.Helper()
	pipeline := bson.A{bson.D{{Key: "$replaceWith", Value: bson.D{{Key: "$literal", Value: after}}}}}
	kind, data, err := bson.MarshalValue(pipeline)
	if err != nil {
		t.Fatal(err)
	}
	u, err := modify.Compile(bson.RawValue{Type: kind, Value: data}, modify.Options{SinceFive: true, Env: expression.Env{}})
	if err != nil {
		t.Fatal(err)
	}
	applied, err := u.Apply(before, nil)
	if err != nil {
		t.Fatal(err)
	}
	return applied
}

// The cases are those of the server's
// jstests/change_streams/pipeline_style_updates_v2_oplog_entries.js.
func TestPipelines_AreToldByPathWhereThatIsShorter(t *testing.T) {
	t.Parallel()
	giant, medium, small := strings.Repeat("*", 1024), strings.Repeat("*", 128), strings.Repeat("*", 32)
	fill := strings.NewReplacer("GIANT", giant, "MEDIUM", medium, "SMALL", small)
	nested := `{"_id":100,"giant":"GIANT","a":"updated","doc":{"a":{"0":"foo"}},"arr":[{"x":1,"y":"SMALL"},"MEDIUM"],"arr_a":[1,"MEDIUM"],
		"arr_b":[[1,"SMALL"],"MEDIUM"],"arr_c":[["SMALL",1,2,3],"MEDIUM"],"obj":{"x":{"a":1,"b":1,"c":["MEDIUM",1,2,3],"str":"MEDIUM"}}}`
	for _, c := range []struct{ name, before, after, want string }{
		{
			"fields, elements and a shorter array", `{"_id":100,"a":1,"b":2,"sub":["GIANT",{"a":"MEDIUM"},1,2,3],"whole":[0,1,2,3],"giant":"GIANT"}`,
			`{"_id":100,"a":2,"b":2,"sub":["GIANT",{"a":"MEDIUM","b":3}],"whole":[0],"giant":"GIANT","c":3}`,
			`{"a":2,"whole":[0],"c":3,"sub.1.b":3} [] [{sub 2}]`,
		},
		{"a field that is gone", `{"_id":100,"a":2,"b":2,"giant":"GIANT"}`, `{"_id":100,"b":2,"giant":"GIANT"}`, `{} [a] []`},
		{
			"what is nested", nested,
			`{"_id":100,"giant":"GIANT","arr":[{"y":"SMALL"},"MEDIUM"],"arr_a":[2,"MEDIUM"],"arr_b":[[2,"SMALL"],"MEDIUM"],"arr_c":[["SMALL"],"MEDIUM"],
				"obj":{"x":{"b":2,"c":["MEDIUM"],"str":"MEDIUM"}}}`,
			`{"arr_a.0":2,"arr_b.0.0":2,"obj.x.b":2} [a doc arr.0.x obj.x.a] [{arr_c.0 1} {obj.x.c 1}]`,
		},
		{"a field that moved", `{"_id":1,"a":1,"b":"GIANT"}`, `{"_id":1,"b":"GIANT","a":1}`, `{"a":1} [] []`},
		{"the new document is shorter", `{"_id":100,"a":"GIANT"}`, `{"_id":100,"b":2}`, "replaced"},
	} {
		applied := becomes(t, querytest.Document(t, fill.Replace(c.before)), querytest.Document(t, fill.Replace(c.after)))
		got := "replaced"
		if applied.Delta != nil {
			got = fmt.Sprint(querytest.Relaxed(applied.Delta.Updated), " ", applied.Delta.Removed, " ", applied.Delta.Truncated)
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// The cases are those of the server's
// jstests/change_streams/expanded_update_description.js.
func TestPathsThatCanBeReadInTwoWays_AreTakenApart(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("*", 128)
	for _, c := range []struct{ name, before, after, want string }{
		{"indexes", `{"_id":1,"a":[{"b":[1,"LONG"]}]}`, `{"_id":1,"a":[{"b":[2,"LONG"]}]}`, ""},
		{"a number first", `{"_id":1,"0":1,"l":"LONG"}`, `{"_id":1,"0":2,"l":"LONG"}`, ""},
		{"a number later", `{"_id":1,"a":{"0":{"1":"x","l":"LONG"}}}`, `{"_id":1,"a":{"0":{"1":"y","l":"LONG"}}}`, `{"a.0.1":["a","0","1"]}`},
		{"dots", `{"_id":1,"a.b":{"c":1},"l":"LONG"}`, `{"_id":1,"a.b":{"d":1},"l":"LONG"}`, `{"a.b":["a.b"]}`},
		{
			"all three", `{"_id":1,"a.b":[[{"0":[{"1.2":{"a.b":null,"c":"LONG"}}]}]]}`, `{"_id":1,"a.b":[[{"0":[{"1.2":{"a.b":true,"c":"LONG"}}]}]]}`,
			`{"a.b.0.0.0.0.1.2.a.b":["a.b",0,0,"0",0,"1.2","a.b"]}`,
		},
		{"a shorter array", `{"_id":1,"a.b":["LONG",2]}`, `{"_id":1,"a.b":["LONG"]}`, `{"a.b":["a.b"]}`},
	} {
		fill := strings.NewReplacer("LONG", long)
		applied := becomes(t, querytest.Document(t, fill.Replace(c.before)), querytest.Document(t, fill.Replace(c.after)))
		got := ""
		if applied.Delta == nil {
			got = "replaced"
		} else if applied.Delta.Ambiguous != nil {
			got = querytest.Relaxed(applied.Delta.Ambiguous)
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
	operators := update(t, `{"$set":{"a.0.1":5,"l.0.1":5},"$unset":{"a.2":1}}`)
	applied, err := operators.Apply(querytest.Document(t, `{"_id":1,"a":{"0":{"1":2},"2":1},"l":[{"1":1}]}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := querytest.Relaxed(applied.Delta.Ambiguous), `{"a.0.1":["a","0","1"],"l.0.1":["l",0,"1"],"a.2":["a","2"]}`; got != want {
		t.Errorf("operators: got %s, want %s", got, want)
	}
}

func TestPipelines_WhatIsToldGivesTheNewDocument(t *testing.T) {
	t.Parallel()
	told := 0
	rapid.Check(t, func(rt *rapid.T) {
		before, after := anyDocument().Draw(rt, "before"), anyDocument().Draw(rt, "after")
		applied := becomes(rt, before, after)
		if applied.Delta == nil {
			return // unchanged, or told as a replacement
		}
		told++
		start := before
		for _, cut := range applied.Delta.Truncated {
			start = truncated(rt, start, cut)
		}
		made, err := bson.Marshal(applyDelta(rt, start, applied.Delta))
		if err != nil {
			rt.Fatal(err)
		}
		if a, b := sortedFields(rt, made), sortedFields(rt, applied.Doc); a != b {
			rt.Fatalf("%s to %s\n delta  %s\n gives  %s\n wanted %s", querytest.Relaxed(before), querytest.Relaxed(after), deltaText(applied.Delta), a, b)
		}
	})
	if told == 0 {
		t.Error("nothing was told by path")
	}
}

// anyDocument is one with much that stays the same.
func anyDocument() *rapid.Generator[bson.Raw] {
	long := strings.Repeat("*", 40)
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		return rapid.Custom(func(t *rapid.T) any {
			switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
			case kind == 0 && depth > 0:
				return rapid.SliceOfN(value(depth-1), 0, 4).Draw(t, "array")
			case kind == 1 && depth > 0:
				d := bson.D{{Key: "long", Value: long}}
				for _, name := range []string{"a", "b", "c"} {
					if rapid.Bool().Draw(t, name) {
						d = append(d, bson.E{Key: name, Value: value(depth-1).Draw(t, "value")})
					}
				}
				return d
			case kind == 2:
				return long
			}
			return rapid.Int32Range(0, 2).Draw(t, "number")
		})
	}
	return rapid.Custom(func(t *rapid.T) bson.Raw {
		d := bson.D{{Key: "_id", Value: 1}, {Key: "long", Value: long + long}}
		for _, name := range []string{"a", "b", "c"} {
			if rapid.Bool().Draw(t, name) {
				d = append(d, bson.E{Key: name, Value: value(3).Draw(t, "value")})
			}
		}
		raw, err := bson.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	})
}

// truncated cuts an array, as who reads a stream does.
func truncated(t *rapid.T, doc bson.Raw, cut modify.Truncation) bson.Raw {
	array, err := doc.LookupErr(strings.Split(cut.Path, ".")...)
	if err != nil || array.Type != bson.TypeArray {
		t.Fatalf("%s is no array: %v", cut.Path, err)
	}
	kept := bsonkit.Values(array)
	if len(kept) <= cut.Size {
		t.Fatalf("%s has %d elements already", cut.Path, len(kept))
	}
	b := bsonkit.NewBuilder(nil)
	b.Append(cut.Path, bsonkit.Array(kept[:cut.Size]))
	out, err := bson.Marshal(applyDelta(t, doc, &modify.Delta{Updated: b.Finish()}))
	if err != nil {
		t.Fatal(err)
	}
	return out
}
