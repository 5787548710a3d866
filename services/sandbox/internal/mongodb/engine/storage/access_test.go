package storage

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/query"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

// Generators remember their text when they are drawn from, so parallel tests
// must not share one.

func scalars() *rapid.Generator[any] {
	return rapid.SampledFrom([]any{
		int32(0), int32(1), int32(2), int64(2), 2.5, -1.0, math.NaN(), math.Inf(-1), "", "a", "b", nil, true, false,
		bson.DateTime(5),
		bson.MinKey{},
		bson.MaxKey{},
	})
}

// anyValue is a scalar, an array or a document with fields x and y.
func anyValue(depth int) *rapid.Generator[any] {
	if depth == 0 {
		return scalars()
	}
	return rapid.OneOf(
		scalars(), scalars(),
		rapid.Custom(func(t *rapid.T) any {
			return bson.A(rapid.SliceOfN(anyValue(depth-1), 0, 3).Draw(t, "array"))
		}),
		rapid.Custom(func(t *rapid.T) any { return anyFields(t, depth-1, "x", "y") }),
	)
}

func anyFields(t *rapid.T, depth int, names ...string) bson.D {
	d := bson.D{}
	for _, name := range names {
		if rapid.IntRange(0, 3).Draw(t, "has "+name) > 0 {
			d = append(d, bson.E{Key: name, Value: anyValue(depth).Draw(t, name)})
		}
	}
	return d
}

func indexedPaths() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"a", "b", "a.x", "a.y", "b.x", "a.0", "a.x.y"})
}

func anyIndex(t *rapid.T) IndexSpec {
	paths := rapid.SliceOfNDistinct(indexedPaths(), 1, 3, rapid.ID).Draw(t, "paths")
	spec := IndexSpec{Name: fmt.Sprint(paths), Sparse: rapid.IntRange(0, 3).Draw(t, "sparse") == 0}
	for _, path := range paths {
		spec.Fields = append(spec.Fields, IndexField{Path: path, Descending: rapid.Bool().Draw(t, "descending")})
	}
	return spec
}

func anyCondition(t *rapid.T) any {
	value := anyValue(1)
	switch rapid.IntRange(0, 6).Draw(t, "condition") {
	case 0, 1:
		return value.Draw(t, "equal")
	case 2:
		return bson.D{{Key: "$in", Value: bson.A(rapid.SliceOfN(value, 0, 3).Draw(t, "in"))}}
	case 3:
		return bson.D{{Key: "$exists", Value: rapid.Bool().Draw(t, "exists")}}
	case 4:
		return bson.D{
			{Key: "$gte", Value: scalars().Draw(t, "from")}, {Key: "$lt", Value: scalars().Draw(t, "to")},
		}
	default:
		operator := rapid.SampledFrom([]string{"$gt", "$gte", "$lt", "$lte", "$ne", "$eq"}).Draw(t, "operator")
		return bson.D{{Key: operator, Value: scalars().Draw(t, "operand")}}
	}
}

func anyFilter(t *rapid.T) bson.D {
	d := bson.D{}
	for _, path := range rapid.SliceOfNDistinct(indexedPaths(), 1, 3, rapid.ID).Draw(t, "filtered") {
		d = append(d, bson.E{Key: path, Value: anyCondition(t)})
	}
	return d
}

// TestAccess_IndexesFindWhatAScanFinds builds a table with random indexes and compares
// what every index gives for random filters and sorts with a scan.
func TestAccess_IndexesFindWhatAScanFinds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		table := NewTable()
		for range rapid.IntRange(0, 3).Draw(t, "indexes") {
			spec := anyIndex(t)
			if table.IndexNamed(spec.Name) == nil {
				if err := table.AddIndex(spec); err != nil {
					t.Fatal(err)
				}
			}
		}
		fill(t, table)
		for range 4 {
			compareAccesses(t, table, anyFilter(t), anySort(t))
		}
	})
}

func fill(t *rapid.T, table *Table) {
	for id := range int64(rapid.IntRange(1, 12).Draw(t, "documents")) {
		fields := append(bson.D{{Key: "_id", Value: id}}, anyFields(t, 2, "a", "b")...)
		doc, err := bson.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		// A document with two arrays may not fit a compound index.
		_ = table.Insert(id, doc, 1)
	}
}

func anySort(t *rapid.T) bson.D {
	d := bson.D{}
	for _, path := range rapid.SliceOfNDistinct(indexedPaths(), 0, 2, rapid.ID).Draw(t, "sorted") {
		d = append(d, bson.E{Key: path, Value: rapid.SampledFrom([]int32{1, -1}).Draw(t, "direction")})
	}
	return d
}

func compareAccesses(t rapid.TB, table *Table, filter, order bson.D) {
	f, sort := compiled(t, filter, order)
	want := run(t, table, Access{}, f)
	chosen, err := Choose(table, f, sort, Hint{})
	if err != nil {
		t.Fatal(err)
	}
	got := run(t, table, chosen, f)
	if chosen.Covers(f) {
		n := 0
		for sc := NewScan(table, chosen); ; n++ {
			if _, ok := sc.StepKey(); !ok {
				break
			}
		}
		if n != len(want) {
			t.Fatalf("filter %v through the keys of %s: got %d documents, want %v", filter, chosen, n, want)
		}
	}
	key := func(doc bson.Raw) []byte {
		key, err := sort.AppendKey(nil, doc)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	if chosen.Sorted && !slices.IsSortedFunc(got, func(a, b bson.Raw) int { return bytes.Compare(key(a), key(b)) }) {
		t.Fatalf("filter %v sort %v: got %v, which is not sorted", filter, order, got)
	}
	byBytes := func(a, b bson.Raw) int { return bytes.Compare(a, b) }
	slices.SortFunc(want, byBytes)
	slices.SortFunc(got, byBytes)
	if !slices.EqualFunc(got, want, func(a, b bson.Raw) bool { return bytes.Equal(a, b) }) {
		t.Fatalf("filter %v through %s: got %v, want %v", filter, chosen, got, want)
	}
}

// TestAccess_AnIndexTellsTheValuesOfAField compares them with those of a scan.
func TestAccess_AnIndexTellsTheValuesOfAField(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		table := NewTable()
		if err := table.AddIndex(anyIndex(t)); err != nil {
			t.Fatal(err)
		}
		fill(t, table)
		path := indexedPaths().Draw(t, "path")
		filter := anyFilter(t)
		if rapid.Bool().Draw(t, "all") {
			filter = nil
		}
		f, _ := compiled(t, filter, nil)
		a, ok := ChooseDistinct(table, f, path)
		if !ok {
			return
		}
		want := valuesAt(path, run(t, table, Access{}, f))
		var docs []bson.Raw
		for sc := NewScan(table, a); ; {
			_, rec, ok := sc.StepValue()
			if !ok {
				break
			}
			docs = append(docs, rec.Doc)
		}
		if got := valuesAt(path, docs); !maps.Equal(got, want) {
			t.Fatalf("values of %s of %v through %s: got %x, want %x", path, filter, a, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	})
}

func valuesAt(path string, docs []bson.Raw) map[string]bool {
	values := map[string]bool{}
	for _, doc := range docs {
		found, _ := bsonkit.AppendIndexValues(nil, doc, bsonkit.ParsePath(path))
		for _, v := range found {
			if v.Type != bsonkit.Missing {
				values[string(bsonkit.AppendKey(nil, v))] = true
			}
		}
	}
	return values
}

func (a Access) String() string {
	if a.Index == nil {
		return "a scan"
	}
	return fmt.Sprintf("%s %x", a.Index.Spec.Name, a.ranges)
}

func compiled(t rapid.TB, filter, order bson.D) (*match.Filter, *query.Sort) {
	rawFilter, err := bson.Marshal(append(bson.D{}, filter...))
	if err != nil {
		t.Fatal(err)
	}
	rawOrder, err := bson.Marshal(append(bson.D{}, order...))
	if err != nil {
		t.Fatal(err)
	}
	f, err := match.Compile(rawFilter, expression.Env{})
	if err != nil {
		t.Skip(err) // not every combination is a filter
	}
	sort, err := query.CompileSort(rawOrder)
	if err != nil {
		t.Skip(err)
	}
	return f, sort
}

func run(t rapid.TB, table *Table, a Access, f *match.Filter) []bson.Raw {
	var found []bson.Raw
	for sc := NewScan(table, a); ; {
		_, rec, ok := sc.Step()
		if !ok {
			return found
		}
		matches, err := f.Match(rec.Doc)
		if err != nil {
			t.Fatal(err)
		}
		if matches {
			found = append(found, rec.Doc)
		}
	}
}

// TestAccess_ArraysInIndexes holds the cases that a careless choice gets wrong: each
// document must be found once, whatever index is taken.
func TestAccess_ArraysInIndexes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fields       []string
		docs         []bson.D
		filter, sort bson.D
		want         int
	}{
		"several elements in one range": {
			[]string{"a"},
			[]bson.D{{{Key: "a", Value: bson.A{1, 2, 3}}}},
			bson.D{{Key: "a", Value: bson.D{{Key: "$gte", Value: 1}}}},
			nil, 1,
		},
		"bounds met by different elements": {
			[]string{"a"},
			[]bson.D{{{Key: "a", Value: bson.A{0, 9}}}},
			bson.D{{Key: "a", Value: bson.D{{Key: "$gt", Value: 3}, {Key: "$lt", Value: 5}}}},
			nil, 1,
		},
		"paths met by different elements": {
			[]string{"a.x", "a.y"},
			[]bson.D{{{Key: "a", Value: bson.A{bson.D{{Key: "x", Value: 1}}, bson.D{{Key: "y", Value: 2}}}}}},
			bson.D{{Key: "a.x", Value: 1}, {Key: "a.y", Value: 2}},
			nil, 1,
		},
		"a position that elements have as a field too": {
			[]string{"b", "a.0"},
			[]bson.D{{{Key: "b", Value: 1}, {Key: "a", Value: bson.A{bson.D{{Key: "0", Value: 7}}}}}},
			bson.D{{Key: "b", Value: 1}, {Key: "a.0", Value: 7}},
			nil, 1,
		},
		"a sort by the least element": {
			[]string{"a"},
			[]bson.D{{{Key: "a", Value: bson.A{5, 1}}}, {{Key: "a", Value: 3}}},
			bson.D{{Key: "a", Value: bson.D{{Key: "$gt", Value: 2}}}},
			bson.D{{Key: "a", Value: 1}},
			2,
		},
		"an empty array": {
			[]string{"a"},
			[]bson.D{{{Key: "a", Value: bson.A{}}}, {{Key: "a", Value: 1}}},
			bson.D{{Key: "a", Value: bson.A{}}},
			nil, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := NewTable()
			spec := IndexSpec{Name: "index"}
			for _, path := range c.fields {
				spec.Fields = append(spec.Fields, IndexField{Path: path})
			}
			noError(t, table.AddIndex(spec))
			for id, fields := range c.docs {
				raw, err := bson.Marshal(append(bson.D{{Key: "_id", Value: id}}, fields...))
				noError(t, err)
				noError(t, table.Insert(int64(id), raw, 1))
			}
			compareAccesses(t, table, c.filter, c.sort)
			f, _ := compiled(t, c.filter, nil)
			a, _ := accessThrough(table.Indexes[1], f, nil)
			if got := run(t, table, a, f); len(got) != c.want {
				t.Errorf("through %s: got %v, want %d documents", a, got, c.want)
			}
		})
	}
}

// TestAccess_AccessChoice pins which index is taken, so that no statement falls back
// to a scan unseen.
func TestAccess_AccessChoice(t *testing.T) {
	t.Parallel()
	table := NewTable()
	for _, spec := range []IndexSpec{
		{Name: "a", Fields: []IndexField{{Path: "a"}}},
		{Name: "ab", Fields: []IndexField{{Path: "a"}, {Path: "b", Descending: true}}},
		{Name: "s", Fields: []IndexField{{Path: "s"}}, Sparse: true},
		{Name: "p", Fields: []IndexField{{Path: "p"}}, Partial: func(bson.Raw) (bool, error) { return true, nil }},
	} {
		noError(t, table.AddIndex(spec))
	}
	for name, c := range map[string]struct {
		filter, sort bson.D
		want         string
	}{
		"an _id": {bson.D{{Key: "_id", Value: 1}}, nil, "_id_"},
		"an _id guarded by another field": {
			bson.D{{Key: "_id", Value: 1}, {Key: "_relay.sequence", Value: bson.D{{Key: "$lt", Value: "x"}}}}, nil, "_id_",
		},
		"an _id and an indexed field":     {bson.D{{Key: "a", Value: 1}, {Key: "_id", Value: 1}}, nil, "_id_"},
		"one field":                       {bson.D{{Key: "a", Value: 1}}, nil, "a"},
		"two fields of a compound index":  {bson.D{{Key: "a", Value: 1}, {Key: "b", Value: bson.D{{Key: "$gt", Value: 3}}}}, nil, "ab"},
		"one field, sorted by another":    {bson.D{{Key: "a", Value: 1}}, bson.D{{Key: "b", Value: 1}}, "ab reverse sorted"},
		"a sort alone":                    {bson.D{}, bson.D{{Key: "_id", Value: -1}}, "_id_ reverse sorted"},
		"a sparse index for a value":      {bson.D{{Key: "s", Value: 1}}, nil, "s"},
		"a sparse index misses nothing":   {bson.D{{Key: "s", Value: nil}}, nil, ""},
		"a sparse index does not sort":    {bson.D{}, bson.D{{Key: "s", Value: 1}}, ""},
		"a partial index is not trusted":  {bson.D{{Key: "p", Value: 1}}, nil, ""},
		"a field without an index":        {bson.D{{Key: "z", Value: 1}}, nil, ""},
		"a sort against a compound index": {bson.D{}, bson.D{{Key: "a", Value: 1}, {Key: "b", Value: 1}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rawFilter, err := bson.Marshal(c.filter)
			noError(t, err)
			f, err := match.Compile(rawFilter, expression.Env{})
			noError(t, err)
			var sort *query.Sort
			if c.sort != nil {
				rawSort, err := bson.Marshal(c.sort)
				noError(t, err)
				sort, err = query.CompileSort(rawSort)
				noError(t, err)
			}
			a, err := Choose(table, f, sort, Hint{})
			noError(t, err)
			if got := describe(a); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func describe(a Access) string {
	if a.Index == nil {
		return ""
	}
	parts := []string{a.Index.Spec.Name}
	if a.reverse {
		parts = append(parts, "reverse")
	}
	if a.Sorted {
		parts = append(parts, "sorted")
	}
	return strings.Join(parts, " ")
}
