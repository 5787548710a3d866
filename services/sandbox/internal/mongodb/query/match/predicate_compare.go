package match

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

type operator int

const (
	opEq operator = iota
	opGt
	opGte
	opLt
	opLte
)

func operatorOf(name string) operator {
	switch name {
	case "$gt":
		return opGt
	case "$gte":
		return opGte
	case "$lt":
		return opLt
	case "$lte":
		return opLte
	}
	return opEq
}

// comparison compares with a constant, but only values of its kind: a number is
// not less than a text.
type comparison struct {
	op    operator
	value bson.RawValue
	nan   bool
}

func newComparison(op operator, field string, v bson.RawValue) (*comparison, error) {
	if v.Type == bson.TypeUndefined {
		return nil, mongoerr.New(mongoerr.BadValue, "cannot compare to undefined")
	}
	if v.Type == bson.TypeRegex && op != opEq {
		return nil, mongoerr.New(mongoerr.BadValue, "Can't have RegEx as arg to predicate over field '%s'.", field)
	}
	return &comparison{op: op, value: v, nan: bsonkit.IsNaN(v)}, nil
}

func (c *comparison) pass(v bson.RawValue, _ *int) bool {
	if !bsonkit.SameOrder(v.Type, c.value.Type) {
		return c.passOther(v)
	}
	if c.nan || bsonkit.IsNaN(v) {
		return c.nan && bsonkit.IsNaN(v) && c.op != opGt && c.op != opLt
	}
	if c.op == opEq {
		return bsonkit.Equal(v, c.value)
	}
	switch d := bsonkit.Compare(v, c.value); c.op {
	case opGt:
		return d > 0
	case opGte:
		return d >= 0
	case opLt:
		return d < 0
	default:
		return d <= 0
	}
}

// passOther has the kinds that compare all the same: an undefined value passes
// for null, and everything lies between MinKey and MaxKey.
func (c *comparison) passOther(v bson.RawValue) bool {
	switch c.value.Type {
	case bson.TypeNull:
		return v.Type == bson.TypeUndefined && c.op != opGt && c.op != opLt
	case bson.TypeMinKey:
		return c.op == opGt || c.op == opGte
	case bson.TypeMaxKey:
		return c.op == opLt || c.op == opLte
	}
	return false
}

// fewValues is up to where comparing one by one beats making a key.
const fewValues = 4

// membership is $in: equal to any of the values or matched by any of the
// regular expressions.
type membership struct {
	values  []bson.RawValue
	keys    map[string]struct{} // set when there are many values
	regexes []*regex
	null    bool
}

func (p filterParser) newMembership(name string, v bson.RawValue) (*membership, error) {
	if v.Type != bson.TypeArray {
		return nil, mongoerr.New(mongoerr.BadValue, "%s needs an array", name)
	}
	m := &membership{}
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		if err := m.add(p, name, it.Value()); err != nil {
			return nil, err
		}
	}
	if len(m.values) > fewValues {
		m.keys = make(map[string]struct{}, len(m.values))
		for _, v := range m.values {
			m.keys[string(bsonkit.AppendKey(nil, v))] = struct{}{}
		}
	}
	return m, nil
}

func (m *membership) add(p filterParser, name string, v bson.RawValue) error {
	switch {
	case v.Type == bson.TypeUndefined:
		return mongoerr.New(mongoerr.BadValue, "%s cannot contain undefined", name)
	case IsOperators(v):
		return mongoerr.New(mongoerr.BadValue, "cannot nest $ under %s", name)
	case v.Type == bson.TypeRegex:
		r, err := p.regex(regexOf(v))
		m.regexes = append(m.regexes, r)
		return err
	}
	m.null = m.null || v.Type == bson.TypeNull
	m.values = append(m.values, v)
	return nil
}

func (m *membership) pass(v bson.RawValue, at *int) bool {
	if v.Type == bson.TypeUndefined && m.null {
		return true
	}
	// A missing value equals null, if that is among the values.
	if m.has(v) {
		return true
	}
	for _, r := range m.regexes {
		if r.pass(v, at) {
			return true
		}
	}
	return false
}

func (m *membership) has(v bson.RawValue) bool {
	if m.keys != nil {
		var buf [64]byte
		_, ok := m.keys[string(bsonkit.AppendKey(buf[:0], v))]
		return ok
	}
	for _, w := range m.values {
		if bsonkit.Equal(v, w) {
			return true
		}
	}
	return false
}

// only is the single value that passes, if there is just one.
func (m *membership) only() (bson.RawValue, bool) {
	if len(m.values) != 1 || len(m.regexes) > 0 {
		return bson.RawValue{}, false
	}
	return m.values[0], true
}
