package match_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/query/match"
	"changerelay/services/sandbox/internal/mongodb/query/querytest"
)

// within reports whether an index key lies in one of the ranges.
func within(ranges []match.KeyRange, key []byte) bool {
	for _, r := range ranges {
		if bytes.Compare(key, r.Low) >= 0 && (r.High == nil || bytes.Compare(key, r.High) < 0) {
			return true
		}
	}
	return false
}

func TestBounds_BoundsHoldJustWhatAConditionNeeds(t *testing.T) {
	t.Parallel()
	probes := []string{`{"$minKey":1}`, `null`, `1`, `2`, `5`, `5.5`, `9`, `"a"`, `"ab"`, `"abc"`, `"b"`, `{"x":1}`, `[1]`, `true`, `{"$maxKey":1}`}
	for _, c := range []struct{ filter, want string }{
		{`{"a":5}`, `5`},
		{`{"a":{"$gt":2}}`, `5 5.5 9`},
		{`{"a":{"$gte":2,"$lt":9}}`, `2 5 5.5`},
		{`{"a":{"$lte":2}}`, `1 2`},
		{`{"a":{"$gt":9,"$lt":1}}`, ``},
		{`{"a":{"$in":[9,1,"a"]}}`, `1 9 "a"`},
		{`{"a":{"$in":[]}}`, ``},
		{`{"a":{"$all":[]}}`, ``},
		{`{"a":null}`, `null`},
		{`{"a":{"$gt":"a"}}`, `"ab" "abc" "b"`},
		{`{"a":{"$regex":"^ab"}}`, `"ab" "abc"`},
		{`{"a":{"$regex":"^ab*"}}`, `"a" "ab" "abc"`},
		{`{"a":{"$regex":"^ab|b"}}`, `"a" "ab" "abc" "b"`},
		{`{"a":{"$regex":"^ab","$options":"i"}}`, `"a" "ab" "abc" "b"`},
		{`{"$or":[{"a":1},{"a":{"$gte":9}}]}`, `1 9`},
		{`{"$and":[{"a":{"$gt":1}},{"a":{"$in":[1,2,"a"]}}]}`, `2`},
		{`{"$or":[{"a":1},{"b":1}]}`, strings.Join(probes, " ")},
		{`{"a":{"$ne":1}}`, strings.Join(probes, " ")},
		{`{"a":[1]}`, strings.Join(probes, " ")},
		{`{"a":{"$exists":false}}`, strings.Join(probes, " ")},
		{`{"b":1}`, strings.Join(probes, " ")},
	} {
		t.Run(c.filter, func(t *testing.T) {
			t.Parallel()
			b := querytest.Filter(t, c.filter).Bounds("a", false)
			var up, down []string
			for _, json := range probes {
				v := querytest.Value(t, json)
				if within(b.Ranges(false), bsonkit.AppendKey(nil, v)) {
					up = append(up, json)
				}
				if within(b.Ranges(true), bsonkit.AppendKeyDesc(nil, v)) {
					down = append(down, json)
				}
			}
			if got := strings.Join(up, " "); got != c.want {
				t.Errorf("ascending: got %s, want %s", got, c.want)
			}
			if got := strings.Join(down, " "); got != c.want {
				t.Errorf("descending: got %s, want %s", got, c.want)
			}
		})
	}
}

func TestBounds_BoundsThatAreAFewKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		filter string
		points int // -1: they are no points
	}{
		{`{"a":5}`, 1},
		{`{"a":{"$in":[3,1,1.0,2]}}`, 3},
		{`{"a":{"$in":[3,1],"$gt":1}}`, 1},
		{`{"$or":[{"a":1},{"a":{"$in":[1,2]}}]}`, 2},
		{`{"a":{"$in":[]}}`, 0},
		{`{"a":{"$gte":5,"$lte":5}}`, -1},
		{`{"a":{"$in":[1,null]}}`, -1},
		{`{"$or":[{"a":1},{"a":{"$gte":1}}]}`, -1},
		{`{}`, -1},
	} {
		t.Run(c.filter, func(t *testing.T) {
			t.Parallel()
			keys, ok := querytest.Filter(t, c.filter).Bounds("a", false).Points()
			if got := len(keys); ok != (c.points >= 0) || ok && got != c.points {
				t.Errorf("got %d points, %v, want %d", got, ok, c.points)
			}
		})
	}
}

func TestBounds_BoundsOfAMultikeyIndexUseOneConditionOnly(t *testing.T) {
	t.Parallel()
	f := querytest.Filter(t, `{"a":{"$gt":5,"$lt":3}}`)
	doc := querytest.Document(t, `{"a":[1,9]}`)
	if ok, err := f.Match(doc); !ok || err != nil {
		t.Fatalf("different elements fulfil the conditions: got %v, %v, want true", ok, err)
	}
	if keys := countWithin(f.Bounds("a", true), doc); keys == 0 {
		t.Error("multikey bounds miss a match")
	}
	if keys := countWithin(f.Bounds("a", false), doc); keys != 0 {
		t.Errorf("bounds of single values: got %d keys within, want 0", keys)
	}
}

func countWithin(b match.Bounds, doc bson.Raw) int {
	n := 0
	values, _ := bsonkit.IndexValues(doc, "a")
	for _, v := range values {
		if within(b.Ranges(false), bsonkit.AppendKey(nil, v)) {
			n++
		}
	}
	return n
}

// conditions are filters on the field a: every operator with every operand.
func conditions() []string {
	operands := []string{`1`, `2`, `2.5`, `"a"`, `"ab"`, `null`, `{"x":1}`, `[1,2]`, `[]`, `true`, `{"$minKey":1}`, `{"$maxKey":1}`, `{"$numberDouble":"NaN"}`, `{"$numberDouble":"-Infinity"}`}
	all := []string{`{"a":{"$regex":"^a"}}`, `{"a":{"$exists":false}}`, `{"a":{"$type":"string"}}`, `{"a":{"$size":2}}`}
	for _, x := range operands {
		for _, op := range []string{"$eq", "$ne", "$gt", "$gte", "$lt", "$lte"} {
			all = append(all, fmt.Sprintf(`{"a":{"%s":%s}}`, op, x), fmt.Sprintf(`{"a":{"$not":{"%s":%s}}}`, op, x))
		}
		all = append(all, fmt.Sprintf(`{"a":{"$elemMatch":{"$gte":%s}}}`, x))
		for _, y := range []string{`2`, `"a"`, `null`, `[]`, `{"$maxKey":1}`, `{"$numberDouble":"NaN"}`} {
			all = append(all,
				fmt.Sprintf(`{"a":{"$in":[%s,%s]}}`, x, y),
				fmt.Sprintf(`{"a":{"$nin":[%s,%s]}}`, x, y),
				fmt.Sprintf(`{"a":{"$gte":%s,"$lte":%s}}`, x, y),
				fmt.Sprintf(`{"$or":[{"a":{"$lt":%s}},{"a":%s}]}`, x, y),
				fmt.Sprintf(`{"$nor":[{"a":{"$lt":%s}},{"a":%s}]}`, x, y))
		}
	}
	return all
}

// No index may hide a match: for every match some key of the document lies
// within the bounds, in both directions of the index.
func TestBounds_BoundsNeverHideAMatch(t *testing.T) {
	t.Parallel()
	docs := querytest.Documents(t, `[{},{"a":1},{"a":2},{"a":2.5},{"a":"a"},{"a":"ab"},{"a":null},{"a":{"x":1}},{"a":[1,2]},{"a":[]},{"a":[[1,2]]},{"a":["a",3]},{"a":[null]},
		{"a":true},{"a":{"$minKey":1}},{"a":{"$maxKey":1}},{"a":{"$numberDouble":"NaN"}},{"a":{"$numberDouble":"-Infinity"}},{"a":{"$undefined":true}},{"a":{"$regularExpression":{"pattern":"^a","options":""}}}]`)
	matches := 0
	for _, json := range conditions() {
		f := querytest.Filter(t, json)
		for _, doc := range docs {
			ok, err := f.Match(doc)
			if err != nil {
				t.Fatalf("%s on %s: %v", json, doc, err)
			}
			if !ok {
				continue
			}
			matches++
			values, multikey := bsonkit.IndexValues(doc, "a")
			if !holds(f.Bounds("a", true), values) || !holds(f.Bounds("a", multikey), values) {
				t.Errorf("%s matches %s, but its keys are out of bounds", json, doc)
			}
		}
	}
	if matches < 1000 {
		t.Errorf("only %d matches were looked at", matches)
	}
}

// holds reports whether an index finds one of the values, whichever way it is
// read.
func holds(b match.Bounds, values []bson.RawValue) bool {
	up := slices.ContainsFunc(values, func(v bson.RawValue) bool { return within(b.Ranges(false), bsonkit.AppendKey(nil, v)) })
	down := slices.ContainsFunc(values, func(v bson.RawValue) bool { return within(b.Ranges(true), bsonkit.AppendKeyDesc(nil, v)) })
	points, ok := b.Points()
	return up && down && (!ok || slices.ContainsFunc(values, func(v bson.RawValue) bool {
		return slices.ContainsFunc(points, func(p []byte) bool { return bytes.Equal(p, bsonkit.AppendKey(nil, v)) })
	}))
}

func TestBounds_RangesAreAscendingAndDisjoint(t *testing.T) {
	t.Parallel()
	condition := rapid.SampledFrom(conditions())
	rapid.Check(t, func(rt *rapid.T) {
		f := querytest.Filter(t, `{"$or":[`+condition.Draw(rt, "a")+`,`+condition.Draw(rt, "b")+`,`+condition.Draw(rt, "c")+`]}`)
		for _, descending := range []bool{false, true} {
			var last []byte
			for i, r := range f.Bounds("a", false).Ranges(descending) {
				if i > 0 && (last == nil || bytes.Compare(r.Low, last) < 0) {
					rt.Fatalf("range %d begins at %x, the one before ends at %x", i, r.Low, last)
				}
				last = r.High
			}
		}
	})
}
