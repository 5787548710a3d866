package command

import (
	"math"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// Arguments reads the fields of a command. The first error stays in err; what
// is read after it is the zero value.
type Arguments struct {
	// Mismatch is what the command answers to a value of the wrong type:
	// commands differ in that.
	Mismatch mongoerr.Code
	Err      error
}

// Fail remembers an error, if it is the first.
func (a *Arguments) Fail(code mongoerr.Code, format string, args ...any) {
	if a.Err == nil {
		a.Err = mongoerr.New(code, format, args...)
	}
}

// WrongType refuses the type of a value.
func (a *Arguments) WrongType(name string, v bson.RawValue, want string) {
	a.Fail(a.Mismatch, "BSON field '%s' is the wrong type '%s', expected type '%s'", name, bsonkit.TypeName(v.Type), want)
}

// wrongFieldType refuses a value in a document that is read field by field.
func (a *Arguments) wrongFieldType(name string, v bson.RawValue, want string) {
	a.Fail(mongoerr.TypeMismatch, "\"%s\" had the wrong type. Expected %s, found %s", name, want, bsonkit.TypeName(v.Type))
}

func (a *Arguments) fieldText(name string, v bson.RawValue) string {
	s, ok := v.StringValueOK()
	if !ok {
		a.wrongFieldType(name, v, "string")
	}
	return s
}

func (a *Arguments) fieldDocument(name string, v bson.RawValue) bson.Raw {
	doc, ok := v.DocumentOK()
	if !ok {
		a.wrongFieldType(name, v, "object")
	}
	return doc
}

// Text takes a string only.
func (a *Arguments) Text(name string, v bson.RawValue) string {
	s, ok := v.StringValueOK()
	if !ok {
		a.WrongType(name, v, "string")
	}
	return s
}

// Boolean takes a bool only.
func (a *Arguments) Boolean(name string, v bson.RawValue) bool {
	b, ok := v.BooleanOK()
	if !ok {
		a.WrongType(name, v, "bool")
	}
	return b
}

// Truth takes a bool, a number or null, as commands of the older kind do.
func (a *Arguments) Truth(name string, v bson.RawValue) bool {
	if Absent(v) {
		return false
	}
	if bsonkit.IsNumber(v.Type) {
		n, _ := v.AsFloat64OK()
		return n != 0
	}
	return a.Boolean(name, v)
}

// Document takes null for nothing, too.
func (a *Arguments) Document(name string, v bson.RawValue) bson.Raw {
	if v.Type == bson.TypeNull {
		return nil
	}
	doc, ok := v.DocumentOK()
	if !ok {
		a.WrongType(name, v, "object")
	}
	return doc
}

// Array gives the elements of an array.
func (a *Arguments) Array(name string, v bson.RawValue) []bson.RawValue {
	if v.Type != bson.TypeArray {
		a.WrongType(name, v, "array")
		return nil
	}
	var values []bson.RawValue
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		values = append(values, it.Value())
	}
	return values
}

// Documents takes an array of documents.
func (a *Arguments) Documents(name string, v bson.RawValue) []bson.Raw {
	var docs []bson.Raw
	for _, element := range a.Array(name, v) {
		docs = append(docs, a.Document(name, element))
	}
	return docs
}

// WholeNumber takes any number that is one and fits: some commands refuse a
// fraction that Integer cuts off.
func (a *Arguments) WholeNumber(name string, v bson.RawValue) int64 {
	if !bsonkit.IsNumber(v.Type) {
		a.Fail(mongoerr.BadValue, "%s value is not a valid number", name)
		return 0
	}
	n, ok := bsonkit.WholeNumber(v)
	if !ok {
		a.Fail(mongoerr.FailedToParse, "Expected an integer: %s: %s", name, bsonkit.Describe(v))
	}
	return n
}

// Integer takes any number, cuts off the fraction of a double and rounds a
// decimal, and limits both to what fits.
func (a *Arguments) Integer(name string, v bson.RawValue) int64 {
	if !bsonkit.IsNumber(v.Type) {
		a.WrongType(name, v, "long")
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
	if d, ok := v.Decimal128OK(); ok {
		v = bsonkit.Decimal(bsonkit.RoundDecimal(d, 0, bsonkit.HalfToEven))
	}
	n, _ := bsonkit.Truncated(v)
	return n
}

// Count is an integer that is not negative.
func (a *Arguments) Count(name string, v bson.RawValue) int64 {
	n := a.Integer(name, v)
	if n < 0 {
		a.Fail(mongoerr.BadValue, "BSON field '%s' value must be >= 0, actual value '%d'", name, n)
	}
	return n
}

// Milliseconds takes a whole number that is not negative.
func (a *Arguments) Milliseconds(name string, v bson.RawValue) time.Duration {
	if !bsonkit.IsNumber(v.Type) {
		a.Fail(mongoerr.BadValue, "%s must be a number", name)
		return 0
	}
	if f, ok := v.DoubleOK(); ok && f != math.Trunc(f) {
		a.Fail(mongoerr.BadValue, "%s has non-integral value", name)
		return 0
	}
	n := a.Integer(name, v)
	if n < 0 || n > math.MaxInt32 {
		a.Fail(mongoerr.BadValue, "%d value for %s is out of range", n, name)
		return 0
	}
	return time.Duration(n) * time.Millisecond
}

// Unknown refuses a field that the command does not have.
func (a *Arguments) Unknown(code mongoerr.Code, command, name string) {
	a.Fail(code, "BSON field '%s.%s' is an unknown field.", command, name)
}

// Hint takes an index by its name or its key pattern.
func (a *Arguments) Hint(name string, v bson.RawValue) storage.Hint {
	if index, ok := v.StringValueOK(); ok {
		return storage.Hint{Name: index}
	}
	pattern, ok := v.DocumentOK()
	if !ok {
		a.Fail(mongoerr.FailedToParse, "Hint must be a string or an object")
		return storage.Hint{}
	}
	if natural, ok := bsonkit.Get(pattern, "$natural"); ok {
		n, _ := natural.AsInt64OK()
		return storage.Hint{Natural: true, Reverse: n < 0}
	}
	if len(pattern) <= len(bsonkit.Empty) {
		return storage.Hint{}
	}
	return storage.Hint{Key: pattern}
}

// Namespace takes a full collection name apart.
func (a *Arguments) Namespace(full string) oplog.Namespace {
	db, collection, ok := strings.Cut(full, ".")
	ns := oplog.Namespace{DB: db, Collection: collection}
	if !ok || ns.Validate() != nil {
		a.Fail(mongoerr.InvalidNamespace, "Invalid namespace specified '%s'", full)
	}
	return ns
}

// BatchSize reads the cursor option.
func (a *Arguments) BatchSize(options bson.Raw) int {
	size := FirstBatch
	for it := bsonkit.Iterate(options); it.Next(); {
		if name := string(it.Key()); name == "batchSize" {
			size = int(min(a.Count(name, it.Value()), NoLimit))
		} else {
			a.Fail(mongoerr.BadValue, "cursor object can't contain fields other than batchSize, found %s", name)
		}
	}
	return size
}

// OneOf reads a text that is one of a few.
func (a *Arguments) OneOf(name string, v bson.RawValue, allowed ...string) string {
	given := a.Text(name, v)
	if slices.Contains(allowed, given) {
		return given
	}
	a.Fail(mongoerr.BadValue, "Enumeration value '%s' for field '%s' is not a valid value.", given, name)
	return ""
}

// Scale is what sizes are divided by.
func (a *Arguments) Scale(options bson.Raw) int64 {
	v, given := bsonkit.Get(options, "scale")
	if !given || Absent(v) {
		return 1
	}
	scale, ok := v.AsInt64OK()
	if !ok || scale < 1 {
		a.Fail(mongoerr.BadValue, "scale has to be >= 1")
		return 1
	}
	return scale
}

// Absent tells a value that stands for none: a field with it is as good as not
// there in commands of the newer kind.
func Absent(v bson.RawValue) bool { return v.Type == bson.TypeNull || v.Type == bson.TypeUndefined }

// IsTrue reads a flag of a command.
func IsTrue(doc bson.Raw, name string) bool {
	v, ok := bsonkit.Get(doc, name)
	a := Arguments{}
	return ok && a.Truth(name, v)
}

// ArrayOf gives an array of a command, empty for none.
func ArrayOf(doc bson.Raw, name string) bson.Raw {
	v, _ := bsonkit.Get(doc, name)
	if v.Type != bson.TypeArray {
		return nil
	}
	return v.Value
}
