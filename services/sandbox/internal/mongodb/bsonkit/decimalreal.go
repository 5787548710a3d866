package bsonkit

import (
	"math"

	"github.com/cockroachdb/apd/v3"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// decimalContext is that of decimal128. What does not fit becomes infinite or
// zero; nothing is trapped.
var decimalContext = apd.Context{Precision: decimalDigits, MaxExponent: 6144, MinExponent: -6143, Rounding: apd.RoundHalfEven}

// Exponential is e to the power of d.
func Exponential(d bson.Decimal128) bson.Decimal128 {
	return decimalFunction(d, decimalContext.Exp)
}

// NaturalLogarithm is the logarithm of d to the base e.
func NaturalLogarithm(d bson.Decimal128) bson.Decimal128 {
	return decimalFunction(d, decimalContext.Ln)
}

// CommonLogarithm is the logarithm of d to the base 10.
func CommonLogarithm(d bson.Decimal128) bson.Decimal128 {
	return decimalFunction(d, decimalContext.Log10)
}

// Logarithm is that of d to a base.
func Logarithm(d, base bson.Decimal128) bson.Decimal128 {
	if Compare(Decimal(base), Int32(10)) == 0 {
		return CommonLogarithm(d)
	}
	x, y, result := new(apd.Decimal), new(apd.Decimal), new(apd.Decimal)
	if !read(x, NaturalLogarithm(d)) || !read(y, NaturalLogarithm(base)) {
		return decimalNaN()
	}
	_, err := decimalContext.Quo(result, x, y)
	return written(result, err)
}

// Power is a to the power of b.
func Power(a, b bson.Decimal128) bson.Decimal128 {
	x, y, result := new(apd.Decimal), new(apd.Decimal), new(apd.Decimal)
	if read(y, b) && y.IsZero() {
		return ToDecimal(Int32(1))
	}
	if read(x, a) && read(y, b) && x.Form == apd.Finite && y.Form == apd.Finite && !x.IsZero() && !y.IsZero() {
		if _, err := decimalContext.Pow(result, x, y); err == nil && result.Form != apd.NaN {
			return written(result, nil)
		}
	}
	// Of what is special or out of range a double knows as much.
	return ToDecimal(Double(math.Pow(Float(Decimal(a)), Float(Decimal(b)))))
}

func decimalFunction(d bson.Decimal128, f func(result, x *apd.Decimal) (apd.Condition, error)) bson.Decimal128 {
	x, result := new(apd.Decimal), new(apd.Decimal)
	if !read(x, d) {
		return decimalNaN()
	}
	_, err := f(result, x)
	return written(result, err)
}

func read(x *apd.Decimal, d bson.Decimal128) bool {
	_, _, err := x.SetString(d.String())
	return err == nil && x.Form != apd.NaN
}

func written(x *apd.Decimal, err error) bson.Decimal128 {
	if err != nil || x.Form == apd.NaN || x.Form == apd.NaNSignaling {
		return decimalNaN()
	}
	if x.Form == apd.Infinite {
		return decimalInf(x.Negative)
	}
	if whole := new(apd.Decimal); x.Exponent < 0 {
		// What is exact has no zeros behind the point.
		if _, err := decimalContext.RoundToIntegralValue(whole, x); err == nil && whole.Cmp(x) == 0 {
			x = whole
		}
	}
	d, err := bson.ParseDecimal128(x.Text('E'))
	if err != nil {
		return decimalInf(x.Negative)
	}
	return d
}
