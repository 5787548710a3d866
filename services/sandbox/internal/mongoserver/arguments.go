package mongoserver

import (
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
)

// arguments reads the fields of a command. The first error stays in err; what
// is read after it is the zero value.
type arguments struct {
	// mismatch is what the command answers to a value of the wrong type:
	// commands differ in that.
	mismatch mongoerr.Code
	err      error
}

func (a *arguments) fail(code mongoerr.Code, format string, args ...any) {
	if a.err == nil {
		a.err = mongoerr.New(code, format, args...)
	}
}

func (a *arguments) wrongType(name string, v bson.RawValue, want string) {
	a.fail(a.mismatch, "BSON field '%s' is the wrong type '%s', expected type '%s'", name, v.Type, want)
}

func (a *arguments) text(name string, v bson.RawValue) string {
	s, ok := v.StringValueOK()
	if !ok {
		a.wrongType(name, v, "string")
	}
	return s
}

// boolean takes a bool only.
func (a *arguments) boolean(name string, v bson.RawValue) bool {
	b, ok := v.BooleanOK()
	if !ok {
		a.wrongType(name, v, "bool")
	}
	return b
}

// truth takes a bool, a number or null, as commands of the older kind do.
func (a *arguments) truth(name string, v bson.RawValue) bool {
	if v.Type == bson.TypeNull || v.Type == bson.TypeUndefined {
		return false
	}
	if bsonkit.IsNumber(v.Type) {
		n, _ := v.AsFloat64OK()
		return n != 0
	}
	return a.boolean(name, v)
}

// document takes null for nothing, too.
func (a *arguments) document(name string, v bson.RawValue) bson.Raw {
	if v.Type == bson.TypeNull {
		return nil
	}
	doc, ok := v.DocumentOK()
	if !ok {
		a.wrongType(name, v, "object")
	}
	return doc
}

func (a *arguments) array(name string, v bson.RawValue) []bson.RawValue {
	if v.Type != bson.TypeArray {
		a.wrongType(name, v, "array")
		return nil
	}
	var values []bson.RawValue
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		values = append(values, it.Value())
	}
	return values
}

func (a *arguments) documents(name string, v bson.RawValue) []bson.Raw {
	var docs []bson.Raw
	for _, element := range a.array(name, v) {
		docs = append(docs, a.document(name, element))
	}
	return docs
}

// integer takes any number that has no fraction and fits.
func (a *arguments) integer(name string, v bson.RawValue) int64 {
	if !bsonkit.IsNumber(v.Type) {
		a.wrongType(name, v, "long")
		return 0
	}
	if f, ok := v.DoubleOK(); ok {
		switch {
		case math.IsNaN(f):
			return 0
		case f >= math.MaxInt64:
			return math.MaxInt64
		case f <= math.MinInt64:
			return math.MinInt64
		}
		return int64(f)
	}
	n, ok := v.AsInt64OK()
	if !ok {
		a.fail(a.mismatch, "BSON field '%s' is not an integer", name)
	}
	return n
}

// count is an integer that is not negative.
func (a *arguments) count(name string, v bson.RawValue) int64 {
	n := a.integer(name, v)
	if n < 0 {
		a.fail(mongoerr.BadValue, "BSON field '%s' value must be >= 0, actual value '%d'", name, n)
	}
	return n
}

func (a *arguments) milliseconds(name string, v bson.RawValue) time.Duration {
	if !bsonkit.IsNumber(v.Type) {
		a.fail(mongoerr.BadValue, "%s must be a number", name)
		return 0
	}
	n := a.integer(name, v)
	if n < 0 || n > math.MaxInt32 {
		a.fail(mongoerr.BadValue, "%d value for %s is out of range", n, name)
		return 0
	}
	return time.Duration(n) * time.Millisecond
}

// unknown refuses a field that the command does not have.
func (a *arguments) unknown(code mongoerr.Code, command, name string) {
	a.fail(code, "BSON field '%s.%s' is an unknown field.", command, name)
}

// hint takes an index by its name or its key pattern.
func (a *arguments) hint(name string, v bson.RawValue) engine.Hint {
	if index, ok := v.StringValueOK(); ok {
		return engine.Hint{Name: index}
	}
	pattern := a.document(name, v)
	if natural, ok := bsonkit.Get(pattern, "$natural"); ok {
		n, _ := natural.AsInt64OK()
		return engine.Hint{Natural: true, Reverse: n < 0}
	}
	if len(pattern) <= len(emptyDocument) {
		return engine.Hint{}
	}
	return engine.Hint{Key: pattern}
}

var emptyDocument = bson.Raw{5, 0, 0, 0, 0}
