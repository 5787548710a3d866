package bsonkit

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// The key of a number is its kind and, unless that says all, its magnitude:
//
//	2 bytes  binary exponent of the leading bit, biased
//	8 bytes  the leading 64 bits of the magnitude, without the first
//	1 byte   0: that is the exact value; 1: a decimal with more to it follows
//
// which holds every int64 and double exactly. A decimal between two of these
// adds its own exact form. The bytes of negative numbers are inverted.
const (
	kindNaN byte = iota
	kindNegativeInfinity
	kindNegative
	kindZero
	kindPositive
	kindInfinity
)

const exponentBias = 1 << 15

func appendNumber(dst []byte, v bson.RawValue) []byte {
	switch v.Type {
	case bson.TypeDouble:
		return appendDouble(dst, double(v))
	case bson.TypeDecimal128:
		return appendDecimal(dst, v)
	}
	i := integer(v)
	if i == 0 {
		return append(dst, kindZero)
	}
	magnitude := uint64(i)
	if i < 0 {
		magnitude = -magnitude
	}
	shift := bits.LeadingZeros64(magnitude)
	return appendMagnitude(dst, i < 0, 63-shift, magnitude<<shift)
}

func appendDouble(dst []byte, f float64) []byte {
	switch {
	case f == 0:
		return append(dst, kindZero)
	case math.IsNaN(f):
		return append(dst, kindNaN)
	case math.IsInf(f, -1):
		return append(dst, kindNegativeInfinity)
	case math.IsInf(f, 1):
		return append(dst, kindInfinity)
	}
	fraction, exponent := math.Frexp(math.Abs(f))
	// fraction is in [0.5, 1) with 53 bits: scaled by 2^64 it is exact.
	return appendMagnitude(dst, f < 0, exponent-1, uint64(math.Ldexp(fraction, 53))<<11)
}

// appendMagnitude writes an exact value: top has its highest bit set.
func appendMagnitude(dst []byte, negative bool, exponent int, top uint64) []byte {
	dst = append(dst, kindPositive)
	start := len(dst)
	dst = appendLeading(dst, exponent, top)
	dst = append(dst, 0)
	return negate(dst, start, negative)
}

func appendLeading(dst []byte, exponent int, top uint64) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(exponent+exponentBias))
	return binary.BigEndian.AppendUint64(dst, top<<1)
}

func negate(dst []byte, start int, negative bool) []byte {
	if negative {
		dst[start-1] = kindNegative
		invert(dst[start:])
	}
	return dst
}

func appendDecimal(dst []byte, v bson.RawValue) []byte {
	d, ok := v.Decimal128OK()
	switch {
	case !ok || d.IsNaN():
		return append(dst, kindNaN)
	case d.IsInf() < 0:
		return append(dst, kindNegativeInfinity)
	case d.IsInf() > 0:
		return append(dst, kindInfinity)
	}
	coefficient, exponent, err := d.BigInt()
	if err != nil || coefficient.Sign() == 0 {
		return append(dst, kindZero)
	}
	negative := coefficient.Sign() < 0
	coefficient.Abs(coefficient)
	top, binaryExponent, exact := leadingBits(coefficient, exponent)
	if exact {
		return appendMagnitude(dst, negative, binaryExponent, top)
	}
	dst = append(dst, kindPositive)
	start := len(dst)
	dst = append(appendLeading(dst, binaryExponent, top), 1)
	dst = appendDigits(dst, coefficient, exponent)
	return negate(dst, start, negative)
}

// leadingBits gives the highest 64 bits of coefficient * 10^exponent, rounded
// towards zero, and the binary exponent of the first.
func leadingBits(coefficient *big.Int, exponent int) (top uint64, binaryExponent int, exact bool) {
	n := new(big.Int).Set(coefficient)
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exponent, -exponent))), nil)
	scale, remainder := 0, new(big.Int)
	if exponent >= 0 {
		n.Mul(n, power)
	} else {
		scale = max(0, power.BitLen()-n.BitLen()+65)
		n.QuoRem(n.Lsh(n, uint(scale)), power, remainder)
	}
	length := n.BitLen()
	exact = remainder.Sign() == 0
	if length > 64 {
		exact = exact && n.TrailingZeroBits() >= uint(length-64)
		n.Rsh(n, uint(length-64))
		return n.Uint64(), length - 1 - scale, exact
	}
	return n.Uint64() << (64 - length), length - 1 - scale, exact
}

// appendDigits writes a decimal's exact value so that values with the same
// leading bits sort right: the decimal exponent of the first digit, then the
// digits without trailing zeros, then an end that sorts before any digit.
func appendDigits(dst []byte, coefficient *big.Int, exponent int) []byte {
	digits := coefficient.Append(nil, 10)
	dst = binary.BigEndian.AppendUint16(dst, uint16(exponent+len(digits)+exponentBias))
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	return append(append(dst, digits...), 0)
}
