package bsonkit_test

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

func list(values []bson.RawValue) string {
	var parts []string
	for _, v := range values {
		parts = append(parts, short(v))
	}
	return strings.Join(parts, " ")
}

// short writes a value for comparison in tests.
func short(v bson.RawValue) string {
	switch v.Type {
	case bsonkit.Missing:
		return "missing"
	case bson.TypeUndefined:
		return "undefined"
	}
	b := bsonkit.NewBuilder(nil)
	b.Append("v", v)
	json, err := bson.MarshalExtJSON(bson.Raw(b.Finish()), false, false)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(json), `{"v":`), `}`)
}

func TestPath_LookupGoesThroughDocumentsOnly(t *testing.T) {
	t.Parallel()
	doc := document(t, `{"a":{"b":{"c":1},"":2},"d":[{"e":3}],"f":4,"g.h":5}`)
	for path, want := range map[string]string{
		"f": "4", "a.b.c": "1", "a.": "2", "a.b": `{"c":1}`, "d": `[{"e":3}]`,
		"d.e": "missing", "d.0": "missing", "f.x": "missing", "a.x": "missing", "": "missing", "g.h": "missing",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			v, ok := bsonkit.Lookup(doc, path)
			if got := short(v); got != want || ok != (want != "missing") {
				t.Errorf("got %s, %v, want %s", got, ok, want)
			}
		})
	}
}

func TestPath_WalkGivesWhatAConditionSees(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, doc, path, want, whole string }{
		{"a plain field", `{"a":1}`, "a", "1", "1"},
		{"a missing field", `{"b":1}`, "a", "missing", "missing"},
		{"a field of a scalar", `{"a":1}`, "a.b", "missing", "missing"},
		{"a nested field", `{"a":{"b":2}}`, "a.b", "2", "2"},
		{"an array's elements and then itself", `{"a":[1,2]}`, "a", "1 2 [1,2]", "[1,2]"},
		{"an empty array", `{"a":[]}`, "a", "[]", "[]"},
		{"nested arrays one level deep", `{"a":[[1,2],3]}`, "a", "[1,2] 3 [[1,2],3]", "[[1,2],3]"},
		{"fields of an array's documents", `{"a":[{"b":1},{"c":2},{"b":3}]}`, "a.b", "1 missing 3", "1 missing 3"},
		{"nothing for elements that are no documents", `{"a":[1,{"b":2},[{"b":3}]]}`, "a.b", "2", "2"},
		{"nothing inside an empty array", `{"a":[]}`, "a.b", "", ""},
		{"an element by its index", `{"a":[5,6]}`, "a.1", "6", "6"},
		{"no element behind the end", `{"a":[5,6]}`, "a.2", "", ""},
		{"an element that is an array, not taken apart", `{"a":[[1,2]]}`, "a.0", "[1,2]", "[1,2]"},
		{"a field of an element by its index", `{"a":[{"b":1},{"b":2}]}`, "a.1.b", "missing missing 2", "missing missing 2"},
		{"a name that is a number", `{"a":{"0":7}}`, "a.0", "7", "7"},
		{"names that are numbers in an array's documents", `{"a":[{"0":7}]}`, "a.0", `7 {"0":7}`, `7 {"0":7}`},
		{"arrays at several levels", `{"a":[{"b":[1,2]},{"b":3}]}`, "a.b", "1 2 [1,2] 3", "[1,2] 3"},
		{"an array inside an indexed element", `{"a":[[{"b":1}]]}`, "a.0.b", "1", "1"},
		{"an index with a leading zero is a name", `{"a":[5]}`, "a.00", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			doc, path := document(t, c.doc), bsonkit.ParsePath(c.path)
			var found, leaves []bson.RawValue
			path.Walk(doc, func(f bsonkit.Found) bool { found = append(found, f.Value); return true })
			path.WalkLeaves(doc, func(f bsonkit.Found) bool { leaves = append(leaves, f.Value); return true })
			if got := list(found); got != c.want {
				t.Errorf("Walk: got %q, want %q", got, c.want)
			}
			if got := list(leaves); got != c.whole {
				t.Errorf("WalkLeaves: got %q, want %q", got, c.whole)
			}
		})
	}
}

func TestPath_WalkTellsTheIndexInTheOutermostArray(t *testing.T) {
	t.Parallel()
	doc := document(t, `{"a":[{"b":[7,8]},{"b":[9]}],"c":1}`)
	type step struct {
		value string
		index int
		whole bool
	}
	var got []step
	bsonkit.ParsePath("a.b").Walk(doc, func(f bsonkit.Found) bool {
		got = append(got, step{short(f.Value), f.Index, f.Whole})
		return true
	})
	want := []step{{"7", 0, false}, {"8", 0, false}, {"[7,8]", 0, true}, {"9", 1, false}, {"[9]", 1, true}}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("step %d: got %v, want %v", i, got[i], want[i])
		}
	}
	bsonkit.ParsePath("c").Walk(doc, func(f bsonkit.Found) bool {
		if f.Index != -1 {
			t.Errorf("index without an array: got %d, want -1", f.Index)
		}
		return true
	})
}

func TestPath_WalkStopsWhenTold(t *testing.T) {
	t.Parallel()
	doc := document(t, `{"a":[{"b":[1,2]},{"b":3}]}`)
	for stop := 1; stop <= 4; stop++ {
		seen := 0
		finished := bsonkit.ParsePath("a.b").Walk(doc, func(bsonkit.Found) bool {
			seen++
			return seen < stop
		})
		if seen != stop || finished {
			t.Errorf("stop at %d: saw %d, finished %v", stop, seen, finished)
		}
	}
}

func TestPath_IndexValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, doc, path, want string
		multikey              bool
	}{
		{"a scalar", `{"a":1}`, "a", "1", false},
		{"a missing field", `{}`, "a", "missing", false},
		{"null", `{"a":null}`, "a", "null", false},
		{"a field below a scalar", `{"a":1}`, "a.b", "missing", false},
		{"elements", `{"a":[1,2]}`, "a", "1 2", true},
		{"an empty array", `{"a":[]}`, "a", "undefined", true},
		{"nested arrays as such", `{"a":[[1,2]]}`, "a", "[1,2]", true},
		{"fields of elements", `{"a":[{"b":1},{"b":[2,3]},{"c":4}]}`, "a.b", "1 2 3 missing", true},
		{"an array without documents", `{"a":[5]}`, "a.b", "missing", true},
		{"an empty array on the way", `{"a":[]}`, "a.b", "missing", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			values, multikey := bsonkit.IndexValues(document(t, c.doc), c.path)
			if got := list(values); got != c.want || multikey != c.multikey {
				t.Errorf("got %q, multikey %v, want %q, %v", got, multikey, c.want, c.multikey)
			}
		})
	}
}
