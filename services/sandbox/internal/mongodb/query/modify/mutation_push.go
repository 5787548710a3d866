package modify

import (
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query"
	"changerelay/services/sandbox/internal/mongodb/query/collation"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
)

// push is $push.
type push struct {
	creates
	values   []bson.RawValue
	position int // where to put them; math.MaxInt is the end, negative counts from there
	order    func(a, b bson.RawValue) int
	sliced   bool
	slice    int // how many to keep, negative: of the last
}

func newPush(_ string, v bson.RawValue, env expression.Env) (mutation, error) {
	m := push{position: math.MaxInt, values: []bson.RawValue{v}}
	if v.Type != bson.TypeEmbeddedDocument {
		return m, nil
	}
	each, ok := bsonkit.Get(v.Value, "$each")
	if !ok {
		return m, nil
	}
	if each.Type != bson.TypeArray {
		return nil, mongoerr.New(mongoerr.BadValue,
			"The argument to $each in $push must be an array but it was of type: %s", bsonkit.TypeName(each.Type))
	}
	m.values = bsonkit.Values(each)
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		if err := m.clause(string(it.Key()), it.Value(), env.Collation); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *push) clause(name string, v bson.RawValue, by *collation.Collation) error {
	switch name {
	case "$each":
		return nil
	case "$position", "$slice":
		n, ok := bsonkit.WholeNumber(v)
		if !ok {
			return mongoerr.New(mongoerr.BadValue,
				"The value for %s must be an integer value but was given type: %s", name, bsonkit.TypeName(v.Type))
		}
		n = max(math.MinInt32, min(n, math.MaxInt32))
		if name == "$position" {
			m.position = int(n)
		} else {
			m.slice, m.sliced = int(n), true
		}
		return nil
	case "$sort":
		var err error
		m.order, err = pushOrder(v, by)
		return err
	}
	return mongoerr.New(mongoerr.BadValue, "Unrecognized clause in $push: %s", name)
}

// pushOrder reads $sort: 1 or -1 for whole values, a sort specification for
// documents.
func pushOrder(v bson.RawValue, by *collation.Collation) (func(a, b bson.RawValue) int, error) {
	if v.Type == bson.TypeEmbeddedDocument {
		s, err := query.CompileSort(v.Value)
		if err != nil || s == nil {
			return nil, mongoerr.New(mongoerr.BadValue, "The $sort pattern is invalid: %s", bsonkit.Describe(v))
		}
		s = s.In(by)
		return func(a, b bson.RawValue) int { return s.CompareWhole(asDocument(a), asDocument(b)) }, nil
	}
	switch n, _ := bsonkit.WholeNumber(v); n {
	case 1:
		return by.Compare, nil
	case -1:
		return func(a, b bson.RawValue) int { return by.Compare(b, a) }, nil
	}
	return nil, mongoerr.New(mongoerr.BadValue,
		"The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields")
}

// asDocument lets anything else sort like a document without fields.
func asDocument(v bson.RawValue) bson.Raw {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil
	}
	return v.Value
}

func (m push) apply(present bson.RawValue, at place) (outcome, error) {
	var old []bson.RawValue
	switch present.Type {
	case bsonkit.Missing:
	case bson.TypeArray:
		old = bsonkit.Values(present)
	default:
		return outcome{}, mongoerr.New(mongoerr.BadValue, "The field '%s' must be an array but is of type %s in document {%s}",
			at.path, bsonkit.TypeName(present.Type), describeID(at.doc))
	}
	position := m.index(len(old))
	made := slices.Insert(slices.Clone(old), position, m.values...)
	if m.order != nil {
		slices.SortStableFunc(made, m.order)
	}
	if m.sliced {
		made = m.cut(made)
	}
	if present.Type == bson.TypeArray && len(m.values) == 0 && m.order == nil && len(made) == len(old) {
		return outcome{}, nil
	}
	// Elements are reported by themselves where they are put behind all others
	// without having to be counted, and nothing else has happened to the array.
	out := outcome{kind: set, value: bsonkit.Array(made)}
	if len(old) > 0 && m.position > len(old) && m.order == nil && len(made) == len(old)+len(m.values) {
		out.appended = len(m.values)
	}
	return out, nil
}

func (m push) index(length int) int {
	if m.position < 0 {
		return max(0, length+m.position)
	}
	return min(m.position, length)
}

func (m push) cut(values []bson.RawValue) []bson.RawValue {
	if m.slice < 0 {
		return values[max(0, len(values)+m.slice):]
	}
	return values[:min(m.slice, len(values))]
}
