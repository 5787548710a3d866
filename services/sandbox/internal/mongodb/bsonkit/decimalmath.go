package bsonkit

import (
	"math"
	"math/big"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// decimalDigits is how many digits a decimal128 holds.
const decimalDigits = 34

// doubleDigits is how many digits of a double are kept when it becomes a
// decimal, as the server does it: those that a double always holds.
const doubleDigits = 15

// ToDecimal turns any number into a decimal.
func ToDecimal(v bson.RawValue) bson.Decimal128 {
	switch v.Type {
	case bson.TypeDecimal128:
		d, _ := v.Decimal128OK()
		return d
	case bson.TypeDouble:
		return decimalOfDouble(double(v))
	}
	d, _ := bson.ParseDecimal128FromBigInt(big.NewInt(integer(v)), 0)
	return d
}

func decimalOfDouble(f float64) bson.Decimal128 {
	switch {
	case math.IsNaN(f):
		return decimalNaN()
	case math.IsInf(f, 0):
		return decimalInf(f < 0)
	}
	d, _ := bson.ParseDecimal128(strconv.FormatFloat(f, 'E', doubleDigits-1, 64))
	return d
}

func decimalNaN() bson.Decimal128 { return bson.NewDecimal128(0x1F<<58, 0) }

func decimalInf(negative bool) bson.Decimal128 {
	if negative {
		return bson.NewDecimal128(0x3E<<58, 0)
	}
	return bson.NewDecimal128(0x1E<<58, 0)
}

func addDecimals(a, b bson.Decimal128) bson.Decimal128 {
	if d, done := addSpecial(a, b); done {
		return d
	}
	x, xe, _ := a.BigInt()
	y, ye, _ := b.BigInt()
	exponent := min(xe, ye)
	x.Mul(x, powerOfTen(xe-exponent))
	y.Mul(y, powerOfTen(ye-exponent))
	return roundDecimal(x.Add(x, y), exponent, false)
}

func addSpecial(a, b bson.Decimal128) (bson.Decimal128, bool) {
	switch {
	case a.IsNaN() || b.IsNaN(), a.IsInf()*b.IsInf() < 0:
		return decimalNaN(), true
	case a.IsInf() != 0:
		return a, true
	case b.IsInf() != 0:
		return b, true
	}
	return a, false
}

func multiplyDecimals(a, b bson.Decimal128) bson.Decimal128 {
	if a.IsNaN() || b.IsNaN() {
		return decimalNaN()
	}
	if a.IsInf() != 0 || b.IsInf() != 0 {
		return multiplyInfinite(a, b)
	}
	x, xe, _ := a.BigInt()
	y, ye, _ := b.BigInt()
	return roundDecimal(x.Mul(x, y), xe+ye, false)
}

func multiplyInfinite(a, b bson.Decimal128) bson.Decimal128 {
	sign := decimalSign(a) * decimalSign(b)
	if sign == 0 {
		return decimalNaN()
	}
	return decimalInf(sign < 0)
}

// DivideDecimals divides by a divisor that is not zero, to 34 digits.
func DivideDecimals(a, b bson.Decimal128) bson.Decimal128 {
	switch {
	case a.IsNaN() || b.IsNaN(), a.IsInf() != 0 && b.IsInf() != 0:
		return decimalNaN()
	case a.IsInf() != 0:
		return decimalInf(decimalSign(a)*decimalSign(b) < 0)
	case b.IsInf() != 0:
		return roundDecimal(new(big.Int), 0, false)
	}
	x, xe, _ := a.BigInt()
	y, ye, _ := b.BigInt()
	// Enough digits that what is left only decides how the last one rounds.
	shift := max(0, decimalDigits+2+decimalLength(y)-decimalLength(x))
	x.Mul(x, powerOfTen(shift))
	remainder := new(big.Int)
	x.QuoRem(x, y, remainder)
	exponent := xe - ye - shift
	if remainder.Sign() == 0 {
		return shortest(x, exponent, xe-ye)
	}
	return roundDecimal(x, exponent, true)
}

// RemainderDecimals is the remainder of a division whose quotient is cut to a
// whole number, by a divisor that is not zero.
func RemainderDecimals(a, b bson.Decimal128) bson.Decimal128 {
	switch {
	case a.IsNaN() || b.IsNaN() || a.IsInf() != 0:
		return decimalNaN()
	case b.IsInf() != 0:
		return a
	}
	x, xe, _ := a.BigInt()
	y, ye, _ := b.BigInt()
	exponent := min(xe, ye)
	x.Mul(x, powerOfTen(xe-exponent))
	y.Mul(y, powerOfTen(ye-exponent))
	return roundDecimal(x.Rem(x, y), exponent, false)
}

// SquareRoot is the root of a decimal that is not negative, to 34 digits.
func SquareRoot(d bson.Decimal128) bson.Decimal128 {
	n, exponent, err := d.BigInt()
	switch {
	case err != nil: // it is NaN or infinite, and so is its root
		return d
	case n.Sign() == 0:
		return roundDecimal(n, exponent>>1, false)
	}
	// Twice the digits give a root that only lacks what decides how the last one
	// rounds; half of the exponent has to be whole.
	shift := max(0, 2*(decimalDigits+1)-decimalLength(n))
	shift += (exponent - shift) & 1
	n.Mul(n, powerOfTen(shift))
	root := new(big.Int).Sqrt(n)
	if new(big.Int).Mul(root, root).Cmp(n) == 0 {
		return shortest(root, (exponent-shift)/2, exponent>>1)
	}
	return roundDecimal(root, (exponent-shift)/2, true)
}

// shortest takes the zeros off an exact quotient down to the exponent that the
// operands suggest.
func shortest(n *big.Int, exponent, wanted int) bson.Decimal128 {
	ten, digit, cut := big.NewInt(10), new(big.Int), new(big.Int)
	for exponent < wanted && n.Sign() != 0 {
		if cut.QuoRem(n, ten, digit); digit.Sign() != 0 {
			break
		}
		n.Set(cut)
		exponent++
	}
	return roundDecimal(n, exponent, false)
}

// roundDecimal makes the decimal nearest to n * 10^exponent, ties going to the
// even digit. inexact says that the true value lies a little beyond n.
func roundDecimal(n *big.Int, exponent int, inexact bool) bson.Decimal128 {
	drop := max(decimalLength(n)-decimalDigits, bson.MinDecimal128Exp-exponent, 0)
	if drop > 0 {
		n = dropDigits(n, drop, inexact)
		exponent += drop
	}
	if d, ok := bson.ParseDecimal128FromBigInt(n, exponent); ok {
		return d
	}
	// The digits fit, so it is the exponent that is too large.
	return decimalInf(n.Sign() < 0)
}

func dropDigits(n *big.Int, drop int, inexact bool) *big.Int {
	if drop > decimalLength(n)+1 {
		return new(big.Int)
	}
	unit := powerOfTen(drop)
	quotient, rest := new(big.Int).QuoRem(n, unit, new(big.Int))
	twice := rest.Abs(rest).Lsh(rest, 1)
	half := twice.CmpAbs(unit)
	if half > 0 || half == 0 && (inexact || quotient.Bit(0) == 1) {
		quotient.Add(quotient, big.NewInt(int64(n.Sign())))
	}
	return quotient
}

func decimalLength(n *big.Int) int {
	if n.Sign() == 0 {
		return 1
	}
	return len(new(big.Int).Abs(n).Append(nil, 10))
}

func decimalSign(d bson.Decimal128) int {
	if d.IsInf() != 0 {
		return d.IsInf()
	}
	n, _, err := d.BigInt()
	if err != nil {
		return 0
	}
	return n.Sign()
}
