package expression

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func arithmeticOperator(name string) builder {
	switch name {
	case "$add":
		return variadic(0, -1, add)
	case "$subtract":
		return binary(subtract)
	case "$multiply":
		return variadic(0, -1, multiply)
	case "$divide":
		return binary(divide)
	case "$mod":
		return binary(modulo)
	case "$pow":
		return binary(power)
	case "$log":
		return binary(logarithm)
	case "$round", "$trunc":
		return rounding(name)
	case "$abs":
		return unary(absolute)
	case "$ceil":
		return whole(name, math.Ceil)
	case "$floor":
		return whole(name, math.Floor)
	case "$exp":
		return realFunction(name, func(float64) bool { return true }, math.Exp)
	case "$ln":
		return realFunction(name, func(f float64) bool { return f > 0 }, math.Log)
	case "$log10":
		return realFunction(name, func(f float64) bool { return f > 0 }, math.Log10)
	case "$sqrt":
		return realFunction(name, func(f float64) bool { return f >= 0 }, math.Sqrt)
	}
	return nil
}

func typeName(v bson.RawValue) string { return bsonkit.TypeName(v.Type) }

// add sums numbers and at most one date.
func add(args []bson.RawValue) (bson.RawValue, error) {
	var sum total
	var date bson.RawValue
	for _, v := range args {
		switch {
		case nullish(v):
			return bsonkit.Null(), nil
		case v.Type == bson.TypeDateTime && date.Type != bsonkit.Missing:
			return v, mongoerr.New(16612, "only one date allowed in an $add expression")
		case v.Type == bson.TypeDateTime:
			date = v
		case bsonkit.IsNumber(v.Type):
			sum.add(v)
		default:
			return v, mongoerr.New(16554, "$add only supports numeric or date types, not %s", typeName(v))
		}
	}
	if date.Type != bsonkit.Missing {
		return shiftDate(date, sum.value())
	}
	return sum.value(), nil
}

// sumOf becomes a double where the sum leaves the range of int64.
func sumOf(a, b bson.RawValue) bson.RawValue {
	if v, ok := bsonkit.Add(a, b); ok {
		return v
	}
	return bsonkit.Double(bsonkit.Float(a) + bsonkit.Float(b))
}

func shiftDate(date, by bson.RawValue) (bson.RawValue, error) {
	ms, ok := bsonkit.Truncated(roundHalfAway(by))
	if !ok {
		return date, mongoerr.New(mongoerr.Overflow, "date overflow")
	}
	v, ok := bsonkit.Add(bsonkit.Int64(date.DateTime()), bsonkit.Int64(ms))
	if !ok {
		return date, mongoerr.New(mongoerr.Overflow, "date overflow")
	}
	return bsonkit.DateMillis(v.Int64()), nil
}

func roundHalfAway(v bson.RawValue) bson.RawValue {
	if v.Type == bson.TypeDouble {
		return bsonkit.Double(math.Round(v.Double()))
	}
	return v
}

// towardsZero drops the fraction of a double.
func towardsZero(v bson.RawValue) bson.RawValue {
	if v.Type == bson.TypeDouble {
		return bsonkit.Double(math.Trunc(v.Double()))
	}
	return v
}

func subtract(a, b bson.RawValue) (bson.RawValue, error) {
	switch {
	case nullish(a) || nullish(b):
		return bsonkit.Null(), nil
	case bsonkit.IsNumber(a.Type) && bsonkit.IsNumber(b.Type):
		return minus(a, b), nil
	case a.Type == bson.TypeDateTime && b.Type == bson.TypeDateTime:
		return bsonkit.Int64(a.DateTime() - b.DateTime()), nil
	case a.Type == bson.TypeDateTime && bsonkit.IsNumber(b.Type):
		return shiftDate(a, bsonkit.Negate(towardsZero(b)))
	case a.Type == bson.TypeDateTime:
		return a, mongoerr.New(16613, "cant $subtract a %s from a Date", typeName(b))
	}
	return a, mongoerr.New(16556, "cant $subtract a %s from a %s", typeName(b), typeName(a))
}

// minus keeps the wider type even where the negated operand would not fit it.
func minus(a, b bson.RawValue) bson.RawValue {
	if b.Type == bson.TypeInt64 && b.Int64() == math.MinInt64 {
		if x, ok := bsonkit.Truncated(a); ok && bsonkit.IsInteger(a.Type) && x < 0 {
			return bsonkit.Int64(x - math.MinInt64)
		}
	}
	return sumOf(a, bsonkit.Negate(b))
}

func multiply(args []bson.RawValue) (bson.RawValue, error) {
	product := bsonkit.Int32(1)
	for _, v := range args {
		if nullish(v) {
			return bsonkit.Null(), nil
		}
		if !bsonkit.IsNumber(v.Type) {
			return v, mongoerr.New(16555, "$multiply only supports numeric types, not %s", typeName(v))
		}
		p, ok := bsonkit.Multiply(product, v)
		if !ok {
			p = bsonkit.Double(bsonkit.Float(product) * bsonkit.Float(v))
		}
		product = p
	}
	return product, nil
}

func divide(a, b bson.RawValue) (bson.RawValue, error) {
	switch {
	case nullish(a) || nullish(b):
		return bsonkit.Null(), nil
	case !bsonkit.IsNumber(a.Type) || !bsonkit.IsNumber(b.Type):
		return a, mongoerr.New(16609, "$divide only supports numeric types, not %s and %s", typeName(a), typeName(b))
	case bsonkit.IsZero(b):
		return a, mongoerr.New(16608, "can't $divide by zero")
	case eitherDecimal(a, b):
		return bsonkit.Decimal(bsonkit.DivideDecimals(bsonkit.ToDecimal(a), bsonkit.ToDecimal(b))), nil
	}
	return bsonkit.Double(bsonkit.Float(a) / bsonkit.Float(b)), nil
}

func modulo(a, b bson.RawValue) (bson.RawValue, error) {
	switch {
	case nullish(a) || nullish(b):
		return bsonkit.Null(), nil
	case !bsonkit.IsNumber(a.Type) || !bsonkit.IsNumber(b.Type):
		return a, mongoerr.New(16611, "$mod only supports numeric types, not %s and %s", typeName(a), typeName(b))
	case bsonkit.IsZero(b):
		return a, mongoerr.New(16610, "can't $mod by zero")
	case eitherDecimal(a, b):
		return bsonkit.Decimal(bsonkit.RemainderDecimals(bsonkit.ToDecimal(a), bsonkit.ToDecimal(b))), nil
	}
	x, _ := bsonkit.Truncated(a)
	y, whole := bsonkit.WholeNumber(b)
	// A double that is whole divides like an int, if it is no larger than one.
	if a.Type == bson.TypeDouble || b.Type == bson.TypeDouble && (!whole || y != int64(int32(y))) {
		return bsonkit.Double(math.Mod(bsonkit.Float(a), bsonkit.Float(b))), nil
	}
	if a.Type == bson.TypeInt64 || b.Type == bson.TypeInt64 {
		return bsonkit.Int64(x % y), nil
	}
	return bsonkit.Int32(int32(x % y)), nil
}

func eitherDecimal(a, b bson.RawValue) bool {
	return a.Type == bson.TypeDecimal128 || b.Type == bson.TypeDecimal128
}

func absolute(v bson.RawValue) (bson.RawValue, error) {
	switch {
	case nullish(v):
		return bsonkit.Null(), nil
	case !bsonkit.IsNumber(v.Type):
		return v, mongoerr.New(28765, "$abs only supports numeric types, not %s", typeName(v))
	case v.Type == bson.TypeInt64 && v.Int64() == math.MinInt64:
		return v, mongoerr.New(28680, "can't take $abs of long long min")
	case bsonkit.Compare(v, bsonkit.Int32(0)) < 0 && !bsonkit.IsNaN(v):
		return bsonkit.Negate(v), nil
	}
	return v, nil
}
