package expression

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func power(a, b bson.RawValue) (bson.RawValue, error) {
	switch {
	case nullish(a) || nullish(b):
		return bsonkit.Null(), nil
	case !bsonkit.IsNumber(a.Type):
		return a, mongoerr.New(28762, "$pow's base must be numeric, not %s", typeName(a))
	case !bsonkit.IsNumber(b.Type):
		return a, mongoerr.New(28763, "$pow's exponent must be numeric, not %s", typeName(b))
	case bsonkit.IsZero(a) && bsonkit.Float(b) < 0:
		return a, mongoerr.New(28764, "$pow cannot take a base of 0 and a negative exponent")
	}
	if eitherDecimal(a, b) {
		return bsonkit.Decimal(bsonkit.Power(bsonkit.ToDecimal(a), bsonkit.ToDecimal(b))), nil
	}
	result := math.Pow(bsonkit.Float(a), bsonkit.Float(b))
	switch {
	case !bsonkit.IsInteger(a.Type) || !bsonkit.IsInteger(b.Type), bsonkit.Float(b) < 0 && math.Abs(bsonkit.Float(a)) != 1:
		return bsonkit.Double(result), nil
	}
	return integerPower(a, b, result), nil
}

// integerPower multiplies exactly while the result fits an int64.
func integerPower(a, b bson.RawValue, inexact float64) bson.RawValue {
	exponent, _ := bsonkit.Truncated(b)
	base, _ := bsonkit.Truncated(a)
	if exponent > 63 && base != 0 && base != 1 && base != -1 {
		return bsonkit.Double(inexact)
	}
	product := bsonkit.Int32(1)
	if a.Type == bson.TypeInt64 || b.Type == bson.TypeInt64 {
		product = bsonkit.Int64(1)
	}
	if exponent > 63 || exponent < 0 {
		exponent = 2 + exponent&1 // of 0, 1 and -1 only the parity counts
	}
	for range exponent {
		p, ok := bsonkit.Multiply(product, a)
		if !ok {
			return bsonkit.Double(inexact)
		}
		product = p
	}
	return product
}

func logarithm(a, b bson.RawValue) (bson.RawValue, error) {
	switch {
	case nullish(a) || nullish(b):
		return bsonkit.Null(), nil
	case !bsonkit.IsNumber(a.Type):
		return a, mongoerr.New(28756, "$log's argument must be numeric, not %s", typeName(a))
	case !bsonkit.IsNumber(b.Type):
		return a, mongoerr.New(28757, "$log's base must be numeric, not %s", typeName(b))
	case bsonkit.Float(a) <= 0:
		return a, mongoerr.New(28758, "$log's argument must be a positive number, but is %s", bsonkit.Describe(a))
	case bsonkit.Float(b) <= 0 || bsonkit.Float(b) == 1:
		return a, mongoerr.New(28759, "$log's base must be a positive number not equal to 1, but is %s", bsonkit.Describe(b))
	}
	if eitherDecimal(a, b) {
		return bsonkit.Decimal(bsonkit.Logarithm(bsonkit.ToDecimal(a), bsonkit.ToDecimal(b))), nil
	}
	return bsonkit.Double(math.Log(bsonkit.Float(a)) / math.Log(bsonkit.Float(b))), nil
}

// decimalFunctions are those that are computed to all digits of a decimal. The
// others give it the digits of a double.
var decimalFunctions = map[string]func(bson.Decimal128) bson.Decimal128{
	"$exp": bsonkit.Exponential, "$ln": bsonkit.NaturalLogarithm, "$log10": bsonkit.CommonLogarithm, "$sqrt": bsonkit.SquareRoot,
}

// realFunction is a function of real numbers; domain says where it has a value.
func realFunction(name string, domain func(float64) bool, f func(float64) float64) builder {
	return numeric(name, func(v bson.RawValue) (bson.RawValue, error) {
		x := bsonkit.Float(v)
		if x == 0 && !bsonkit.IsZero(v) {
			x = math.Copysign(math.SmallestNonzeroFloat64, x) // a decimal nearer to 0 than any double
		}
		if !math.IsNaN(x) && !domain(x) {
			return v, domainError(name, v)
		}
		if exact := decimalFunctions[name]; v.Type == bson.TypeDecimal128 && exact != nil {
			return bsonkit.Decimal(exact(v.Decimal128())), nil
		}
		if v.Type == bson.TypeDecimal128 {
			return bsonkit.Decimal(bsonkit.ToDecimal(bsonkit.Double(f(x)))), nil
		}
		return bsonkit.Double(f(x)), nil
	})
}

func domainError(name string, v bson.RawValue) error {
	switch name {
	case "$sqrt":
		return mongoerr.New(28714, "$sqrt's argument must be greater than or equal to 0")
	case "$ln":
		return mongoerr.New(28766, "$ln's argument must be a positive number, but is %s", bsonkit.Describe(v))
	}
	return mongoerr.New(28761, "%s's argument must be a positive number, but is %s", name, bsonkit.Describe(v))
}

// numeric is an operator on one number. Null stays null.
func numeric(name string, f func(v bson.RawValue) (bson.RawValue, error)) builder {
	return unary(func(v bson.RawValue) (bson.RawValue, error) {
		if nullish(v) {
			return bsonkit.Null(), nil
		}
		if !bsonkit.IsNumber(v.Type) {
			return v, mongoerr.New(28765, "%s only supports numeric types, not %s", name, typeName(v))
		}
		return f(v)
	})
}
