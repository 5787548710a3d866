package bsonkit_test

import (
	"math"
	"math/big"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

// Each line is greater than the one before; values on one line are equal.
func ascending(t testing.TB) [][]bson.RawValue {
	t.Helper()
	v := func(json string) bson.RawValue { return value(t, json) }
	return [][]bson.RawValue{
		{v(`{"$minKey":1}`)},
		{{Type: bson.TypeUndefined}},
		{v(`null`), {}},
		{v(`{"$numberDouble":"NaN"}`), v(`{"$numberDecimal":"NaN"}`)},
		{v(`{"$numberDouble":"-Infinity"}`), v(`{"$numberDecimal":"-Infinity"}`)},
		{v(`{"$numberDecimal":"-1E+6000"}`)},
		{v(`{"$numberLong":"-9223372036854775808"}`), v(`{"$numberDouble":"-9223372036854775808"}`)},
		{v(`-1.5`)},
		{v(`-1`), v(`{"$numberLong":"-1"}`), v(`{"$numberDouble":"-1"}`), v(`{"$numberDecimal":"-1.00"}`)},
		{v(`0`), v(`{"$numberDouble":"-0.0"}`), v(`{"$numberDecimal":"0E+10"}`), v(`{"$numberDecimal":"-0"}`)},
		{v(`{"$numberDouble":"5e-324"}`)},
		{v(`{"$numberDecimal":"0.1"}`)},
		{v(`{"$numberDouble":"0.1"}`)},
		{v(`{"$numberLong":"9007199254740992"}`), v(`{"$numberDouble":"9007199254740992"}`)},
		{v(`{"$numberLong":"9007199254740993"}`), v(`{"$numberDecimal":"9007199254740993"}`)},
		{v(`{"$numberLong":"9223372036854775807"}`)},
		{v(`{"$numberDouble":"9223372036854775808"}`), v(`{"$numberDecimal":"9223372036854775808"}`)},
		{v(`{"$numberDouble":"18446744073709551616"}`), v(`{"$numberDecimal":"18446744073709551616"}`)},
		{v(`{"$numberDecimal":"18446744073709551617"}`)},
		{v(`{"$numberDecimal":"18446744073709551618"}`)},
		{v(`{"$numberDouble":"Infinity"}`), v(`{"$numberDecimal":"Infinity"}`)},
		{v(`""`)},
		{v(`"a"`), v(`{"$symbol":"a"}`)},
		{v(`"a\u0000"`)},
		{v(`"ab"`)},
		{v(`{}`)},
		{v(`{"b":1}`), v(`{"b":{"$numberDouble":"1"}}`)},
		{v(`{"b":1,"c":1}`)},
		{v(`{"b":2}`)},
		{v(`{"c":1}`)},
		{v(`{"a":"x"}`)},
		{v(`[]`)},
		{v(`[1]`)},
		{v(`[1,2]`)},
		{v(`[2]`)},
		{v(`["a"]`)},
		{v(`{"$binary":{"base64":"","subType":"00"}}`)},
		{v(`{"$binary":{"base64":"/w==","subType":"00"}}`)},
		{v(`{"$binary":{"base64":"AA==","subType":"04"}}`)},
		{v(`{"$binary":{"base64":"AAA=","subType":"00"}}`)},
		{v(`{"$oid":"000000000000000000000001"}`)},
		{v(`{"$oid":"000000000000000000000002"}`)},
		{v(`false`)},
		{v(`true`)},
		{v(`{"$date":{"$numberLong":"-1"}}`)},
		{v(`{"$date":{"$numberLong":"1"}}`)},
		{v(`{"$timestamp":{"t":1,"i":2}}`)},
		{v(`{"$timestamp":{"t":4294967295,"i":0}}`)},
		{v(`{"$regularExpression":{"pattern":"a","options":""}}`)},
		{v(`{"$regularExpression":{"pattern":"a","options":"i"}}`)},
		{v(`{"$regularExpression":{"pattern":"b","options":""}}`)},
		{v(`{"$code":"x"}`)},
		{v(`{"$code":"x","$scope":{"a":1}}`)},
		{v(`{"$maxKey":1}`)},
	}
}

func TestCompare_ValuesAreInTheServersOrder(t *testing.T) {
	t.Parallel()
	lines := ascending(t)
	for i, line := range lines {
		for j, other := range lines {
			want := sign(i - j)
			for _, a := range line {
				for _, b := range other {
					if got := bsonkit.Compare(a, b); got != want {
						t.Errorf("Compare(%s, %s): got %d, want %d", bsonkit.Describe(a), bsonkit.Describe(b), got, want)
					}
				}
			}
		}
	}
}

func sign(n int) int { return big.NewInt(int64(n)).Sign() }

func TestCompare_CompareIsATotalOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := anyValue().Draw(t, "a"), anyValue().Draw(t, "b"), anyValue().Draw(t, "c")
		if got := bsonkit.Compare(a, a); got != 0 {
			t.Fatalf("a value differs from itself: got %d", got)
		}
		ab, ba := bsonkit.Compare(a, b), bsonkit.Compare(b, a)
		if ab != -ba {
			t.Fatalf("got %d one way and %d the other", ab, ba)
		}
		if bc := bsonkit.Compare(b, c); ab <= 0 && bc <= 0 && bsonkit.Compare(a, c) > 0 {
			t.Fatal("a <= b and b <= c, but a > c")
		}
		if bsonkit.Equal(a, b) != (ab == 0) {
			t.Fatalf("Equal is %v where Compare is %d", bsonkit.Equal(a, b), ab)
		}
	})
}

// exact is a number as a fraction, false for NaN and the infinities.
func exact(v bson.RawValue) (*big.Rat, bool) {
	switch v.Type {
	case bson.TypeDouble:
		f := v.Double()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, false
		}
		return new(big.Rat).SetFloat64(f), true
	case bson.TypeDecimal128:
		d := v.Decimal128()
		n, exponent, err := d.BigInt()
		if err != nil || d.IsNaN() || d.IsInf() != 0 {
			return nil, false
		}
		power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exponent, -exponent))), nil)
		if exponent < 0 {
			return new(big.Rat).SetFrac(n, power), true
		}
		return new(big.Rat).SetInt(n.Mul(n, power)), true
	}
	return new(big.Rat).SetInt64(v.AsInt64()), bsonkit.IsNumber(v.Type)
}

func TestCompare_NumbersCompareByTheirExactValue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyNumber().Draw(t, "a"), anyNumber().Draw(t, "b")
		x, ok := exact(a)
		y, also := exact(b)
		if !ok || !also {
			t.Skip("no fraction")
		}
		if got, want := bsonkit.Compare(a, b), x.Cmp(y); got != want {
			t.Fatalf("Compare(%s, %s): got %d, want %d", a, b, got, want)
		}
	})
}
