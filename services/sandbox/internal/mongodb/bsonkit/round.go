package bsonkit

import (
	"math"
	"math/big"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Rounding says which way a number is rounded.
type Rounding int

// The ways of rounding.
const (
	HalfToEven Rounding = iota
	TowardsZero
	Up
	Down
)

// IsInteger reports whether t is one of the two integer types.
func IsInteger(t bson.Type) bool { return t == bson.TypeInt32 || t == bson.TypeInt64 }

// Round rounds a number to so many decimal places, negative ones being before
// the point. The type stays; an int32 that does not hold the result becomes an
// int64, and that a double.
func Round(v bson.RawValue, places int, mode Rounding) bson.RawValue {
	switch v.Type {
	case bson.TypeDouble:
		return roundDouble(v, places, mode)
	case bson.TypeDecimal128:
		return Decimal(RoundDecimal(ToDecimal(v), places, mode))
	}
	if places >= 0 {
		return v
	}
	n := roundBig(big.NewInt(integer(v)), -places, mode)
	if !n.IsInt64() {
		f, _ := new(big.Float).SetInt(n).Float64()
		return Double(f)
	}
	return integerOf(n.Int64(), v.Type, v.Type)
}

// roundDouble goes by the exact decimal value of the double.
func roundDouble(v bson.RawValue, places int, mode Rounding) bson.RawValue {
	f := double(v)
	if math.IsNaN(f) || math.IsInf(f, 0) || f == 0 {
		return v
	}
	exact := new(big.Rat).SetFloat64(f)
	scale := new(big.Rat).SetInt(powerOfTen(max(places, -places)))
	if places >= 0 {
		exact.Mul(exact, scale)
	} else {
		exact.Quo(exact, scale)
	}
	whole := new(big.Rat).SetInt(divideBig(exact.Num(), exact.Denom(), mode))
	if places >= 0 {
		whole.Quo(whole, scale)
	} else {
		whole.Mul(whole, scale)
	}
	rounded, _ := whole.Float64()
	return Double(math.Copysign(rounded, f))
}

// RoundDecimal rounds a decimal to so many places.
func RoundDecimal(d bson.Decimal128, places int, mode Rounding) bson.Decimal128 {
	if d.IsNaN() || d.IsInf() != 0 {
		return d
	}
	n, exponent, err := d.BigInt()
	drop := -places - exponent
	if err != nil || drop <= 0 {
		return d
	}
	if drop > 2*decimalDigits && (mode == HalfToEven || mode == TowardsZero) {
		return roundDecimal(new(big.Int), -places, false)
	}
	return roundDecimal(divideBig(n, powerOfTen(drop), mode), -places, false)
}

func roundBig(n *big.Int, digits int, mode Rounding) *big.Int {
	unit := powerOfTen(digits)
	return new(big.Int).Mul(divideBig(n, unit, mode), unit)
}

// divideBig divides by a positive divisor and rounds.
func divideBig(n, by *big.Int, mode Rounding) *big.Int {
	quotient, rest := new(big.Int).QuoRem(n, by, new(big.Int))
	if rest.Sign() == 0 {
		return quotient
	}
	step := false
	switch mode {
	case Up:
		step = rest.Sign() > 0
	case Down:
		step = rest.Sign() < 0
	case HalfToEven:
		half := new(big.Int).Lsh(rest, 1).CmpAbs(by)
		step = half > 0 || half == 0 && quotient.Bit(0) == 1
	}
	if step {
		quotient.Add(quotient, big.NewInt(int64(rest.Sign())))
	}
	return quotient
}
