package bsonkit

import (
	"cmp"
	"encoding/binary"
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// IsNumber reports whether t is one of the four number types.
func IsNumber(t bson.Type) bool { return orderOf(t) == orderNumber }

func compareNumbers(a, b bson.RawValue) int {
	if a.Type == bson.TypeDecimal128 || b.Type == bson.TypeDecimal128 {
		return compareByKey(a, b)
	}
	if a.Type == bson.TypeDouble {
		if b.Type == bson.TypeDouble {
			return cmp.Compare(double(a), double(b))
		}
		return -compareIntDouble(integer(b), double(a))
	}
	if b.Type == bson.TypeDouble {
		return compareIntDouble(integer(a), double(b))
	}
	return cmp.Compare(integer(a), integer(b))
}

// compareByKey serves the pairs with a decimal, which have no common machine
// type that holds both without loss.
func compareByKey(a, b bson.RawValue) int {
	var x, y [64]byte
	return cmp.Compare(string(appendNumber(x[:0], a)), string(appendNumber(y[:0], b)))
}

func compareIntDouble(i int64, f float64) int {
	switch {
	case math.IsNaN(f), f < -1<<63:
		return 1
	case f >= 1<<63:
		return -1
	}
	whole := math.Trunc(f)
	return cmp.Or(cmp.Compare(i, int64(whole)), cmp.Compare(0, f-whole))
}

func double(v bson.RawValue) float64 { return math.Float64frombits(word(v.Value)) }

// integer is the value of an int32 or an int64.
func integer(v bson.RawValue) int64 {
	if v.Type == bson.TypeInt64 {
		return int64(word(v.Value))
	}
	if len(v.Value) < 4 {
		return 0
	}
	return int64(int32(binary.LittleEndian.Uint32(v.Value)))
}

// IsZero reports whether a number is zero of any sort.
func IsZero(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeDouble:
		return double(v) == 0
	case bson.TypeDecimal128:
		return isZeroDecimal(v)
	}
	return integer(v) == 0
}

// IsNaN reports whether v is a number that is none.
func IsNaN(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeDouble:
		return math.IsNaN(double(v))
	case bson.TypeDecimal128:
		d, ok := v.Decimal128OK()
		return ok && d.IsNaN()
	}
	return false
}

// Truncated is a number without its fraction, limited to the range of int64.
// It reports false for what is no number, or has no such value.
func Truncated(v bson.RawValue) (int64, bool) {
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64:
		return integer(v), true
	case bson.TypeDouble:
		return truncatedDouble(double(v))
	case bson.TypeDecimal128:
		return truncatedDecimal(v)
	}
	return 0, false
}

func truncatedDouble(f float64) (int64, bool) {
	switch {
	case math.IsNaN(f):
		return 0, false
	case f >= 1<<63:
		return math.MaxInt64, !math.IsInf(f, 0)
	case f < -1<<63:
		return math.MinInt64, !math.IsInf(f, 0)
	}
	return int64(f), true
}

// WholeNumber is the value of a number that is one and fits an int64.
func WholeNumber(v bson.RawValue) (int64, bool) {
	n, ok := Truncated(v)
	return n, ok && compareNumbers(Int64(n), v) == 0
}

// Float is the nearest double to a number.
func Float(v bson.RawValue) float64 {
	switch v.Type {
	case bson.TypeDouble:
		return double(v)
	case bson.TypeDecimal128:
		return decimalFloat(v)
	}
	return float64(integer(v))
}

// Truthy is how the server reads a flag: false, null, undefined, a missing value
// and 0 are no.
func Truthy(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeBoolean:
		return len(v.Value) > 0 && v.Value[0] != 0
	case bson.TypeNull, bson.TypeUndefined, Missing:
		return false
	}
	return !IsNumber(v.Type) || !IsZero(v)
}
