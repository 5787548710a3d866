package bsonkit

import (
	"math"
	"math/bits"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Add adds two numbers in the wider of their types; the sum of two int32s that
// is none becomes an int64. It reports false where an int64 is not enough.
func Add(a, b bson.RawValue) (bson.RawValue, bool) {
	switch widest(a.Type, b.Type) {
	case bson.TypeDecimal128:
		return Decimal(addDecimals(ToDecimal(a), ToDecimal(b))), true
	case bson.TypeDouble:
		return Double(Float(a) + Float(b)), true
	}
	x, y := integer(a), integer(b)
	sum := x + y
	if (x < 0) == (y < 0) && (sum < 0) != (x < 0) {
		return bson.RawValue{}, false
	}
	return integerOf(sum, a.Type, b.Type), true
}

// Multiply multiplies two numbers, with the types that Add gives.
func Multiply(a, b bson.RawValue) (bson.RawValue, bool) {
	switch widest(a.Type, b.Type) {
	case bson.TypeDecimal128:
		return Decimal(multiplyDecimals(ToDecimal(a), ToDecimal(b))), true
	case bson.TypeDouble:
		return Double(Float(a) * Float(b)), true
	}
	product, ok := multiplyInts(integer(a), integer(b))
	if !ok {
		return bson.RawValue{}, false
	}
	return integerOf(product, a.Type, b.Type), true
}

// Negate changes a number's sign. Of the smallest int64 it makes a double.
func Negate(v bson.RawValue) bson.RawValue {
	switch v.Type {
	case bson.TypeDouble:
		return Double(-double(v))
	case bson.TypeDecimal128:
		high, low := ToDecimal(v).GetBytes()
		return Decimal(bson.NewDecimal128(high^1<<63, low))
	}
	i := integer(v)
	if i == math.MinInt64 {
		return Double(-float64(i))
	}
	return integerOf(-i, v.Type, v.Type)
}

func widest(a, b bson.Type) bson.Type {
	for _, t := range [...]bson.Type{bson.TypeDecimal128, bson.TypeDouble, bson.TypeInt64} {
		if a == t || b == t {
			return t
		}
	}
	return bson.TypeInt32
}

func integerOf(i int64, a, b bson.Type) bson.RawValue {
	if a == bson.TypeInt64 || b == bson.TypeInt64 {
		return Int64(i)
	}
	return Integer(i)
}

func multiplyInts(x, y int64) (int64, bool) {
	negative := (x < 0) != (y < 0)
	high, low := bits.Mul64(magnitude(x), magnitude(y))
	switch {
	case high != 0, low > 1<<63, low == 1<<63 && !negative:
		return 0, false
	case negative:
		return int64(-low), true
	}
	return int64(low), true
}

func magnitude(i int64) uint64 {
	if i < 0 {
		return -uint64(i)
	}
	return uint64(i)
}
