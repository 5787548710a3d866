package expression

import (
	"math"
	"math/rand/v2"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// trigonometricOperator has the functions of angles
// (https://www.mongodb.com/docs/v4.4/reference/operator/aggregation/#trigonometry-expression-operators).
func trigonometricOperator(name string) builder {
	finite := func(f float64) bool { return !math.IsInf(f, 0) }
	within := func(low, high float64) func(float64) bool {
		return func(f float64) bool { return low <= f && f <= high }
	}
	anywhere := func(float64) bool { return true }
	switch name {
	case "$sin":
		return bounded(name, finite, math.Sin)
	case "$cos":
		return bounded(name, finite, math.Cos)
	case "$tan":
		return bounded(name, finite, math.Tan)
	case "$asin":
		return bounded(name, within(-1, 1), math.Asin)
	case "$acos":
		return bounded(name, within(-1, 1), math.Acos)
	case "$atan":
		return bounded(name, anywhere, math.Atan)
	case "$sinh":
		return bounded(name, anywhere, math.Sinh)
	case "$cosh":
		return bounded(name, anywhere, math.Cosh)
	case "$tanh":
		return bounded(name, anywhere, math.Tanh)
	case "$asinh":
		return bounded(name, anywhere, math.Asinh)
	case "$acosh":
		return bounded(name, within(1, math.Inf(1)), math.Acosh)
	case "$atanh":
		return bounded(name, within(-1, 1), math.Atanh)
	case "$degreesToRadians":
		return bounded(name, anywhere, func(f float64) float64 { return f * math.Pi / 180 })
	case "$radiansToDegrees":
		return bounded(name, anywhere, func(f float64) float64 { return f * 180 / math.Pi })
	case "$atan2":
		return binary(arctangent)
	case "$rand":
		return buildRandom
	}
	return nil
}

// bounded is a function of real numbers that has a value within its domain.
func bounded(name string, domain func(float64) bool, f func(float64) float64) builder {
	return numeric(name, func(v bson.RawValue) (bson.RawValue, error) {
		x := bsonkit.Float(v)
		if !math.IsNaN(x) && !domain(x) {
			return v, mongoerr.New(50989, "cannot apply %s to %s, value must be within its bounds", name, bsonkit.Describe(v))
		}
		if v.Type == bson.TypeDecimal128 {
			return bsonkit.Decimal(bsonkit.ToDecimal(bsonkit.Double(f(x)))), nil
		}
		return bsonkit.Double(f(x)), nil
	})
}

func arctangent(a, b bson.RawValue) (bson.RawValue, error) {
	switch {
	case nullish(a) || nullish(b):
		return bsonkit.Null(), nil
	case !bsonkit.IsNumber(a.Type):
		return a, mongoerr.New(51044, "$atan2 only supports numeric types, not %s", typeName(a))
	case !bsonkit.IsNumber(b.Type):
		return b, mongoerr.New(51045, "$atan2 only supports numeric types, not %s", typeName(b))
	}
	result := math.Atan2(bsonkit.Float(a), bsonkit.Float(b))
	if eitherDecimal(a, b) {
		return bsonkit.Decimal(bsonkit.ToDecimal(bsonkit.Double(result))), nil
	}
	return bsonkit.Double(result), nil
}

// buildRandom is $rand, another number for every document.
func buildRandom(_ *compiler, _ string, argument bson.RawValue) (operand, error) {
	if it := bsonkit.Iterate(argument.Value); argument.Type != bson.TypeEmbeddedDocument && argument.Type != bson.TypeArray || it.Next() {
		return operand{}, mongoerr.New(3040501, "$rand does not currently accept arguments")
	}
	return operand{eval: func(*scope) (bson.RawValue, error) { return bsonkit.Double(rand.Float64()), nil }}, nil
}
