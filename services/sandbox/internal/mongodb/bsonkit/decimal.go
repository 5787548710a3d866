package bsonkit

import (
	"math"
	"math/big"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func truncatedDecimal(v bson.RawValue) (int64, bool) {
	d, ok := v.Decimal128OK()
	if !ok || d.IsNaN() || d.IsInf() != 0 {
		return 0, false
	}
	n, exponent, err := d.BigInt()
	if err != nil {
		return 0, false
	}
	switch {
	case n.Sign() == 0 || exponent < -40:
		return 0, true
	case exponent > 40:
		return limited(n.Sign()), true
	case exponent >= 0:
		n.Mul(n, powerOfTen(exponent))
	default:
		n.Quo(n, powerOfTen(-exponent))
	}
	if !n.IsInt64() {
		return limited(n.Sign()), true
	}
	return n.Int64(), true
}

// isZeroDecimal goes by the digits: there is a zero for every exponent.
func isZeroDecimal(v bson.RawValue) bool {
	d, ok := v.Decimal128OK()
	if !ok || d.IsNaN() || d.IsInf() != 0 {
		return false
	}
	n, _, err := d.BigInt()
	return err == nil && n.Sign() == 0
}

func limited(sign int) int64 {
	if sign < 0 {
		return math.MinInt64
	}
	return math.MaxInt64
}

func decimalFloat(v bson.RawValue) float64 {
	d, ok := v.Decimal128OK()
	switch {
	case !ok || d.IsNaN():
		return math.NaN()
	case d.IsInf() != 0:
		return math.Inf(d.IsInf())
	}
	f, err := strconv.ParseFloat(d.String(), 64)
	if err != nil && !math.IsInf(f, 0) {
		return math.NaN()
	}
	return f
}

func powerOfTen(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}
