package match

import (
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

// Bounds are the keys of path under which an index over bsonkit.IndexValues
// holds the documents that match. They are conservative: every match has a key
// within them, but not all keys within them are matches. In a multikey index
// different elements of an array may fulfil different conditions, so only one
// condition on the path counts then.
func (f *Filter) Bounds(path string, multikey bool) Bounds {
	if f == nil {
		return everything()
	}
	return conditionBounds(f.root, path, multikey)
}

func conditionBounds(c condition, path string, multikey bool) Bounds {
	switch c := c.(type) {
	case allOf:
		b := everything()
		for _, part := range c {
			p := conditionBounds(part, path, multikey)
			if multikey {
				b = b.narrower(p)
			} else {
				b = b.intersect(p)
			}
		}
		return b
	case anyOf:
		b := Bounds{}
		for _, part := range c {
			b = b.union(conditionBounds(part, path, multikey))
		}
		return b
	case *pathCondition:
		if c.path.String() == path {
			return predicateBounds(c.test)
		}
	}
	return everything()
}

func predicateBounds(p predicate) Bounds {
	switch p := p.(type) {
	case *comparison:
		return p.bounds()
	case *membership:
		return p.bounds()
	case *regex:
		return p.bounds()
	case never:
		return Bounds{}
	}
	return everything()
}

func (c *comparison) bounds() Bounds {
	t := c.value.Type
	switch {
	case t == bson.TypeMinKey || t == bson.TypeMaxKey || t == bson.TypeArray:
		// Either much more than its own kind matches, or values that the index
		// does not hold as such.
		return everything()
	case t == bson.TypeNull:
		return typeBounds(bson.TypeUndefined, bson.TypeNull)
	case c.nan && (c.op == opGt || c.op == opLt):
		return Bounds{}
	case c.op == opEq || c.nan:
		return pointBounds(c.value)
	}
	kind := typeBounds(t, t).spans[0]
	at := edge{key: bsonkit.AppendKey(nil, c.value), after: c.op == opGt || c.op == opLte, label: shownValue(c.value)}
	switch c.op {
	case opGt, opGte:
		at.label.open = c.op == opGt
		kind.low = at
	case opLt, opLte:
		if bsonkit.IsNumber(t) {
			kind.low.key = bsonkit.AppendKey(nil, bsonkit.Double(math.Inf(-1))) // NaN is before it
		}
		at.label.open = c.op == opLt
		kind.high = at
	}
	return Bounds{spans: []span{kind}}
}

func (m *membership) bounds() Bounds {
	// All at once: one after another would take the square of their number.
	var all Bounds
	for _, v := range m.values {
		all.spans = append(all.spans, (&comparison{op: opEq, value: v}).bounds().spans...)
	}
	for _, r := range m.regexes {
		all.spans = append(all.spans, r.bounds().spans...)
	}
	return all.union(Bounds{})
}

func (r *regex) bounds() Bounds {
	b := typeBounds(bson.TypeString, bson.TypeString)
	if prefix, ok := r.prefix(); ok {
		key := bsonkit.AppendKey(nil, bsonkit.String(prefix))
		// Without its end mark the key begins those of all longer texts.
		key = key[:len(key)-bsonkit.TextEnd]
		first, behind := shownPrefix(prefix)
		b = Bounds{spans: []span{{low: edge{key: key, label: first}, high: edge{key: key, after: true, label: behind}}}}
	}
	return b.union(typeBounds(bson.TypeRegex, bson.TypeRegex))
}

// Covered reports that the keys within the bounds of these paths are those of the
// matches and no others, so that an index that begins with them tells the matches
// by itself.
func (f *Filter) Covered(paths []string, multikey bool) bool {
	if f == nil {
		return true
	}
	conditions, ok := f.root.(allOf)
	if !ok {
		conditions = allOf{f.root}
	}
	for _, c := range conditions {
		on, ok := c.(*pathCondition)
		if !ok || on.whole || !slices.Contains(paths, on.path.String()) {
			return false
		}
		if test, ok := on.test.(*comparison); !ok || !test.exact() {
			return false
		}
	}
	return !multikey || len(conditions) < 2
}

// exact reports that the bounds hold no key but of values that pass.
func (c *comparison) exact() bool {
	switch c.value.Type {
	case bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128, bson.TypeString, bson.TypeBoolean, bson.TypeDateTime,
		bson.TypeObjectID, bson.TypeTimestamp, bson.TypeBinary, bson.TypeEmbeddedDocument:
		return true
	}
	return false
}
