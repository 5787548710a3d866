package storage

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

// Hint names the index that a statement wants to be used. The zero Hint leaves
// the choice to the engine.
type Hint struct {
	Name string
	// Key is a key pattern; used when Name is empty.
	Key bson.Raw
	// Natural asks for a scan of the records, in reverse if Reverse is set.
	Natural bool
	Reverse bool
	// Min, inclusive, and Max, exclusive, bound the keys of the index. They name
	// all of its fields, in its order; nil is no bound.
	Min, Max bson.Raw
}

// IsZero reports that nothing is asked for.
func (h Hint) IsZero() bool { return h.Name == "" && h.Key == nil && !h.Natural }

// Access is the way a statement reads a table: through key ranges of an index,
// or, with a nil index, through all records. What it gives is a superset of
// what the filter matches.
type Access struct {
	Index *Index
	// ranges are disjoint and ascending; an empty high has no limit.
	ranges  []keyRange
	reverse bool
	// bounds are those of the first fields of the index; hinted tells that they
	// are a hint's instead.
	bounds []match.Bounds
	hinted bool
	// point tells that the ranges are of one key.
	point bool
	// Sorted tells that documents come in the order the sort asks for.
	Sorted bool
}

// keyRange holds the keys from low, inclusive, to high, exclusive.
type keyRange struct{ low, high string }

// maxPoints bounds how many ranges the lists of a filter may multiply to.
const maxPoints = 1000

// Choose picks the index that narrows the filter most; if none does, one
// that gives the order of the sort.
func Choose(t *Table, f *match.Filter, sort *query.Sort, hint Hint) (Access, error) {
	if hint.Natural {
		return Access{reverse: hint.Reverse}, nil
	}
	if !hint.IsZero() {
		ix, err := t.hinted(hint)
		if err != nil {
			return Access{}, err
		}
		if hint.Min != nil || hint.Max != nil {
			return between(ix, hint, sort)
		}
		if !ix.Spec.readable() {
			return Access{}, nil
		}
		a, _ := accessThrough(ix, f, sort)
		return a, nil
	}
	var best Access
	bestScore := 0
	for _, ix := range t.Indexes {
		if ix.Spec.Partial != nil {
			continue // whether the filter implies the expression is not examined
		}
		if ix.Spec.Hidden || !ix.Spec.readable() {
			continue
		}
		a, score := accessThrough(ix, f, sort)
		if ix.Spec.Sparse && (score == 0 || a.reachesNull()) {
			continue
		}
		if a.Sorted {
			score++
		}
		if score > bestScore {
			best, bestScore = a, score
		}
	}
	return best, nil
}

// between reads the keys between the bounds of a hint.
func between(ix *Index, hint Hint, sort *query.Sort) (Access, error) {
	low, err := ix.bound(hint.Min)
	if err != nil {
		return Access{}, err
	}
	high, err := ix.bound(hint.Max)
	if err != nil {
		return Access{}, err
	}
	if low != "" && high != "" && low >= high {
		return Access{}, mongoerr.New(51175, "The value provided for min() does not come before the value provided for max() in the index")
	}
	a := Access{Index: ix, ranges: []keyRange{{low: low, high: high}}, hinted: true}
	a.Sorted, a.reverse = ix.gives(sort, 0)
	return a, nil
}

// bound is the key at a bound, empty for none.
func (ix *Index) bound(values bson.Raw) (string, error) {
	var key []byte
	i := 0
	for it := bsonkit.Iterate(values); it.Next(); i++ {
		if i >= len(ix.Spec.Fields) || ix.Spec.Fields[i].Path != string(it.Key()) {
			return "", errBound()
		}
		key = ix.Spec.Fields[i].appendKey(key, it.Value())
	}
	if !ix.Spec.readable() || values != nil && i != len(ix.Spec.Fields) {
		return "", errBound()
	}
	return string(key), nil
}

func errBound() error {
	return mongoerr.New(51174, "The index chosen is not compatible with min/max")
}

// readable reports that the index holds the values of documents as they are.
func (s IndexSpec) readable() bool { return s.Collation.IsSimple() && !s.Inert }

func (t *Table) hinted(hint Hint) (*Index, error) {
	for _, ix := range t.Indexes {
		if ix.Spec.Hidden {
			continue
		}
		if hint.Name != "" && ix.Spec.Name == hint.Name {
			return ix, nil
		}
		if hint.Name == "" && ix.Spec.HasKey(hint.Key) {
			return ix, nil
		}
	}
	return nil, mongoerr.New(mongoerr.BadValue, "error processing query: planner returned error :: caused by :: "+
		"hint provided does not correspond to an existing index")
}

// HasKey compares key patterns: the fields, their order and directions.
func (s IndexSpec) HasKey(pattern bson.Raw) bool { return SameKey(s.Key(), pattern) }

// Key is the key pattern as it was given.
func (s IndexSpec) Key() bson.Raw {
	key, _ := bsonkit.Get(s.Listed, "key")
	return key.Value
}

// SameKey compares two key patterns: the fields, their order, and the numbers
// or kinds.
func SameKey(a, b bson.Raw) bool {
	one, other := bsonkit.Iterate(a), bsonkit.Iterate(b)
	for one.Next() {
		if !other.Next() || string(one.Key()) != string(other.Key()) || !bsonkit.Equal(one.Value(), other.Value()) {
			return false
		}
	}
	return !other.Next()
}

// FieldsOf reads a key pattern; any value but a negative number is ascending.
func FieldsOf(pattern bson.Raw) []IndexField {
	var fields []IndexField
	for it := bsonkit.Iterate(pattern); it.Next(); {
		n, ok := it.Value().AsInt64OK()
		fields = append(fields, IndexField{Path: string(it.Key()), Descending: ok && n < 0})
	}
	return fields
}

// accessThrough gives the ranges of one index that cover the filter, and how
// much they narrow it: 0 for not at all.
func accessThrough(ix *Index, f *match.Filter, sort *query.Sort) (Access, int) {
	prefixes := []string{""}
	fixed := 0 // leading fields with one value
	score := 0
	var ranges []keyRange
	var used []match.Bounds
	for i, field := range ix.Spec.Fields {
		if i > 0 && ix.multikey {
			break // conditions on two paths may be met by different elements
		}
		if len(ix.Spec.Fields) > 1 && hasPosition(field.Path) {
			break
		}
		bounds := f.Bounds(field.Path, ix.multikey)
		if points, ok := bounds.Points(); ok && len(points)*len(prefixes) <= maxPoints {
			prefixes = extend(prefixes, points, field.Descending)
			if len(prefixes) <= 1 {
				fixed++
			}
			score += 10
			used = append(used, bounds)
			continue
		}
		if !bounds.Unbounded() {
			ranges = within(prefixes, bounds.Ranges(field.Descending))
			score += 5
			used = append(used, bounds)
		}
		break
	}
	if ix.Spec.Unique && score == 10*len(ix.Spec.Fields) {
		score += 100
	}
	if ranges == nil {
		ranges = within(prefixes, nil)
	}
	slices.SortFunc(ranges, func(a, b keyRange) int { return strings.Compare(a.low, b.low) })
	a := Access{Index: ix, ranges: ranges, bounds: used, point: fixed == len(ix.Spec.Fields) && len(ranges) == 1}
	a.Sorted, a.reverse = ix.gives(sort, fixed)
	return a, score
}

func extend(prefixes []string, points [][]byte, descending bool) []string {
	extended := make([]string, 0, len(prefixes)*len(points))
	for _, prefix := range prefixes {
		for _, point := range points {
			if descending {
				point = inverted(point)
			}
			extended = append(extended, prefix+string(point))
		}
	}
	return extended
}

// inverted is what bsonkit.AppendKeyDesc makes of a key.
func inverted(key []byte) []byte {
	out := make([]byte, len(key))
	for i, b := range key {
		out[i] = ^b
	}
	return out
}

// within puts ranges behind each prefix; none means all keys with the prefix.
func within(prefixes []string, ranges []match.KeyRange) []keyRange {
	if ranges == nil {
		ranges = []match.KeyRange{{}}
	}
	var out []keyRange
	for _, prefix := range prefixes {
		end := string(bsonkit.KeyAfter([]byte(prefix)))
		for _, r := range ranges {
			high := end
			if r.High != nil {
				high = prefix + string(r.High)
			}
			out = append(out, keyRange{low: prefix + string(r.Low), high: high})
		}
	}
	return out
}

// gives reports whether the index, read forward or in reverse, has the order of
// the sort, when its first fields each have a single value.
func (ix *Index) gives(sort *query.Sort, fixed int) (sorted, reverse bool) {
	if sort == nil || sort.Collated() || ix.multikey || ix.Spec.Sparse || ix.Spec.Partial != nil {
		return false, false
	}
	single := ix.Spec.Fields[:fixed]
	free := ix.Spec.Fields[fixed:]
	matched := 0
	for _, wanted := range sort.Fields() {
		if hasPosition(wanted.Path) {
			return false, false
		}
		if slices.ContainsFunc(single, func(f IndexField) bool { return f.Path == wanted.Path }) {
			continue
		}
		if matched == len(free) || free[matched].Path != wanted.Path {
			return false, false
		}
		against := free[matched].Descending != wanted.Descending
		if matched > 0 && against != reverse {
			return false, false
		}
		reverse = against
		matched++
	}
	return true, reverse
}

// reachesNull reports that documents without the field may match: a sparse
// index does not hold them.
func (a Access) reachesNull() bool {
	null := string(a.Index.Spec.Fields[0].appendKey(nil, bson.RawValue{Type: bson.TypeNull}))
	return slices.ContainsFunc(a.ranges, func(r keyRange) bool {
		return (null >= r.low || strings.HasPrefix(r.low, null)) && (r.high == "" || null < r.high)
	})
}
