package match

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// predicate is passed or not by a single value, which may be missing. Where at
// is not nil, a test that looks into an array sets it to the element's index.
type predicate interface {
	pass(v bson.RawValue, at *int) bool
}

type never struct{}

func (never) pass(bson.RawValue, *int) bool { return false }

type exists struct{}

func (exists) pass(v bson.RawValue, _ *int) bool { return v.Type != bsonkit.Missing }

type size int

func newSize(v bson.RawValue) (size, error) {
	n, ok := bsonkit.WholeNumber(v)
	if !ok {
		return 0, mongoerr.New(mongoerr.BadValue, "$size must be a whole number")
	}
	if n < 0 {
		return 0, mongoerr.New(mongoerr.BadValue, "$size may not be negative")
	}
	return size(n), nil
}

func (s size) pass(v bson.RawValue, _ *int) bool {
	if v.Type != bson.TypeArray {
		return false
	}
	n := size(0)
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		n++
	}
	return n == s
}

type modulo struct{ divisor, remainder int64 }

func newModulo(v bson.RawValue) (modulo, error) {
	if v.Type != bson.TypeArray {
		return modulo{}, mongoerr.New(mongoerr.BadValue, "malformed mod, needs to be an array")
	}
	parts := bsonkit.Values(v)
	switch {
	case len(parts) < 2:
		return modulo{}, mongoerr.New(mongoerr.BadValue, "malformed mod, not enough elements")
	case len(parts) > 2:
		return modulo{}, mongoerr.New(mongoerr.BadValue, "malformed mod, too many elements")
	}
	divisor, ok := bsonkit.Truncated(parts[0])
	if !ok {
		return modulo{}, mongoerr.New(mongoerr.BadValue, "malformed mod, divisor not a number")
	}
	if divisor == 0 {
		return modulo{}, mongoerr.New(mongoerr.BadValue, "divisor cannot be 0")
	}
	remainder, ok := bsonkit.Truncated(parts[1])
	if !ok {
		return modulo{}, mongoerr.New(mongoerr.BadValue, "malformed mod, remainder not a number")
	}
	return modulo{divisor, remainder}, nil
}

func (m modulo) pass(v bson.RawValue, _ *int) bool {
	n, ok := bsonkit.Truncated(v)
	return ok && n%m.divisor == m.remainder
}

type elemMatchValue []term

func (e elemMatchValue) pass(v bson.RawValue, at *int) bool {
	if v.Type != bson.TypeArray {
		return false
	}
	i := 0
	for it := bsonkit.Iterate(v.Value); it.Next(); i++ {
		if passAll(e, it.Value()) {
			setIndex(at, i)
			return true
		}
	}
	return false
}

// passAll tests one value by itself, without looking into it as a path does.
func passAll(terms []term, v bson.RawValue) bool {
	for _, t := range terms {
		var ok bool
		if t.test != nil {
			ok = t.test.pass(v, nil)
		} else {
			ok = passAll(t.group, v)
		}
		if ok == t.negated {
			return false
		}
	}
	return true
}

type elemMatchDocument struct{ filter condition }

func (e elemMatchDocument) pass(v bson.RawValue, at *int) bool {
	if v.Type != bson.TypeArray {
		return false
	}
	i := 0
	for it := bsonkit.Iterate(v.Value); it.Next(); i++ {
		element := it.Value()
		if element.Type != bson.TypeEmbeddedDocument && element.Type != bson.TypeArray {
			continue
		}
		// No $expr in here, so nothing can fail.
		if ok, _ := e.filter.match(element.Value, nil); ok {
			setIndex(at, i)
			return true
		}
	}
	return false
}

func setIndex(at *int, i int) {
	if at != nil {
		*at = i
	}
}
