package match

import (
	"bytes"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

// Bounds is a set of index keys of one field, as ranges that are disjoint and
// ascending. The zero value holds nothing.
type Bounds struct{ spans []span }

// span is the keys from low to high.
type span struct {
	low, high edge
	// point says that low and high enclose one complete key.
	point bool
}

// edge is a place between keys: just before or just after all keys that begin
// with key. The zero edge is before all keys; last is after all of them.
type edge struct {
	key   []byte
	after bool
	last  bool
	label label
}

// place is the least byte string behind the edge, nil for none.
func (e edge) place() []byte {
	if e.after {
		return bsonkit.KeyAfter(e.key)
	}
	return e.key
}

func compareEdges(a, b edge) int {
	switch {
	case a.last && b.last:
		return 0
	case a.last:
		return 1
	case b.last:
		return -1
	}
	return bytes.Compare(a.place(), b.place())
}

// everything is the bounds that exclude nothing.
func everything() Bounds { return Bounds{spans: []span{{high: edge{last: true}}}} }

func pointBounds(v bson.RawValue) Bounds {
	key, shown := bsonkit.AppendKey(nil, v), shownValue(v)
	return Bounds{spans: []span{{edge{key: key, label: shown}, edge{key: key, after: true, label: shown}, true}}}
}

// typeBounds holds all values that compare with those of the types by value.
func typeBounds(from, to bson.Type) Bounds {
	low, high := bsonkit.TypeKey(from), bsonkit.TypeKey(to)
	first, last := shownType(to)
	return Bounds{spans: []span{{low: edge{key: low, label: first}, high: edge{key: high, after: true, label: last}}}}
}

// KeyRange holds the keys k, made by bsonkit.AppendKey and possibly followed by
// more fields of a compound index, with Low <= k < High. A nil High is no limit.
type KeyRange struct{ Low, High []byte }

// Unbounded reports that the bounds exclude nothing.
func (b Bounds) Unbounded() bool {
	return len(b.spans) == 1 && b.spans[0].low.key == nil && b.spans[0].high.last
}

// Points are the keys, when the bounds are a finite set of them, and whether
// they are. No points at all means that nothing can match.
func (b Bounds) Points() (keys [][]byte, ok bool) {
	for _, s := range b.spans {
		if !s.point {
			return nil, false
		}
		keys = append(keys, s.low.key)
	}
	return keys, true
}

// Ranges are the bounds for an ascending index field, or for a descending one,
// whose keys are made by bsonkit.AppendKeyDesc. They are in the index's order.
func (b Bounds) Ranges(descending bool) []KeyRange {
	ranges := make([]KeyRange, 0, len(b.spans))
	for _, s := range b.spans {
		if descending {
			s.low, s.high = s.high.reversed(), s.low.reversed()
		}
		r := KeyRange{Low: s.low.place()}
		if !s.high.last {
			r.High = s.high.place()
		}
		ranges = append(ranges, r)
	}
	if descending {
		slices.Reverse(ranges)
	}
	return ranges
}

// reversed is the edge's place among keys whose bytes are inverted.
func (e edge) reversed() edge {
	if e.last {
		return edge{}
	}
	if e.key == nil {
		return edge{last: true}
	}
	key := make([]byte, len(e.key))
	for i, c := range e.key {
		key[i] = ^c
	}
	return edge{key: key, after: !e.after, label: e.label}
}

func (b Bounds) intersect(o Bounds) Bounds {
	var spans []span
	for _, x := range b.spans {
		for _, y := range o.spans {
			low, high := x.low, x.high
			if compareEdges(y.low, low) > 0 {
				low = y.low
			}
			if compareEdges(y.high, high) < 0 {
				high = y.high
			}
			if compareEdges(low, high) < 0 {
				spans = append(spans, span{low, high, x.point || y.point})
			}
		}
	}
	return Bounds{spans: spans}
}

func (b Bounds) union(o Bounds) Bounds {
	all := slices.Concat(b.spans, o.spans)
	slices.SortFunc(all, func(x, y span) int { return compareEdges(x.low, y.low) })
	var spans []span
	for _, s := range all {
		if n := len(spans); n > 0 && compareEdges(s.low, spans[n-1].high) <= 0 && !adjacentPoints(spans[n-1], s) {
			if compareEdges(s.high, spans[n-1].high) > 0 {
				spans[n-1].high, spans[n-1].point = s.high, false
			}
			continue
		}
		spans = append(spans, s)
	}
	return Bounds{spans: spans}
}

// adjacentPoints tells two different points that touch from spans that overlap.
func adjacentPoints(x, y span) bool { return compareEdges(y.low, x.high) == 0 }

// narrower chooses, of two bounds that both hold, the one that leaves less.
func (b Bounds) narrower(o Bounds) Bounds {
	if b.weight() <= o.weight() {
		return b
	}
	return o
}

// weight guesses how much of an index the bounds hold: points, then ranges with
// two ends, then all.
func (b Bounds) weight() int {
	if b.Unbounded() {
		return 1 << 30
	}
	if points, ok := b.Points(); ok {
		return len(points)
	}
	return 1<<20 + len(b.spans)
}
