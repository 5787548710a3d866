package bsonkit_test

import (
	"math/big"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

// canonical writes a number with its type.
func canonical(v bson.RawValue) string {
	if v.Type == bsonkit.Missing {
		return "none"
	}
	return bsonkit.TypeName(v.Type) + " " + short(v)
}

func TestArithmetic_ArithmeticKeepsTheWiderType(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, a, b, sum, product string }{
		{"ints", `2`, `3`, "int 5", "int 6"},
		{"an int and a long", `2`, `{"$numberLong":"3"}`, "long 5", "long 6"},
		{"an int and a double", `2`, `0.5`, "double 2.5", "double 1.0"},
		{"a long and a decimal", `{"$numberLong":"2"}`, `{"$numberDecimal":"0.10"}`, `decimal {"$numberDecimal":"2.10"}`, `decimal {"$numberDecimal":"0.20"}`},
		{"ints that become a long", `2147483647`, `2147483647`, "long 4294967294", "long 4611686014132420609"},
		{"longs that overflow", `{"$numberLong":"9223372036854775807"}`, `{"$numberLong":"9223372036854775807"}`, "none", "none"},
		{"the least long", `{"$numberLong":"-9223372036854775808"}`, `1`, "long -9223372036854775807", "long -9223372036854775808"},
		{"the least long, times -1", `{"$numberLong":"-9223372036854775808"}`, `-1`, "none", "none"},
		{"a double and a decimal", `0.1`, `{"$numberDecimal":"1"}`, `decimal {"$numberDecimal":"1.100000000000000"}`, `decimal {"$numberDecimal":"0.100000000000000"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, b := value(t, c.a), value(t, c.b)
			if v, _ := bsonkit.Add(a, b); canonical(v) != c.sum {
				t.Errorf("sum: got %s, want %s", canonical(v), c.sum)
			}
			if v, _ := bsonkit.Multiply(a, b); canonical(v) != c.product {
				t.Errorf("product: got %s, want %s", canonical(v), c.product)
			}
		})
	}
}

func TestArithmetic_IntegerArithmeticIsExactOrRefused(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x, y := rapid.Int64().Draw(t, "x"), rapid.Int64().Draw(t, "y")
		for _, op := range []struct {
			do    func(a, b bson.RawValue) (bson.RawValue, bool)
			exact *big.Int
		}{
			{bsonkit.Add, new(big.Int).Add(big.NewInt(x), big.NewInt(y))},
			{bsonkit.Multiply, new(big.Int).Mul(big.NewInt(x), big.NewInt(y))},
		} {
			v, ok := op.do(bsonkit.Int64(x), bsonkit.Int64(y))
			if ok != op.exact.IsInt64() || ok && v.Int64() != op.exact.Int64() {
				t.Fatalf("got %v, %v, want %v", v, ok, op.exact)
			}
		}
	})
}

func decimal(t testing.TB, s string) bson.Decimal128 {
	t.Helper()
	d, err := bson.ParseDecimal128(s)
	if err != nil {
		t.Fatalf("decimal %s: %v", s, err)
	}
	return d
}

func TestArithmetic_DecimalDivision(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ a, b, quotient, remainder string }{
		{"1", "4", "0.25", "1"},
		{"1", "3", "0.3333333333333333333333333333333333", "1"},
		{"2", "3", "0.6666666666666666666666666666666667", "2"},
		{"10", "2", "5", "0"},
		{"7.5", "2", "3.75", "1.5"},
		{"-7", "4", "-1.75", "-3"},
		{"Infinity", "2", "Infinity", "NaN"},
		{"1", "-Infinity", "0", "1"},
		{"NaN", "1", "NaN", "NaN"},
		{"1E+6144", "1E-100", "Infinity", "0E-100"},
	} {
		t.Run(c.a+" by "+c.b, func(t *testing.T) {
			t.Parallel()
			a, b := decimal(t, c.a), decimal(t, c.b)
			if got := bsonkit.DivideDecimals(a, b).String(); got != c.quotient {
				t.Errorf("quotient: got %s, want %s", got, c.quotient)
			}
			if got := bsonkit.RemainderDecimals(a, b).String(); got != c.remainder {
				t.Errorf("remainder: got %s, want %s", got, c.remainder)
			}
		})
	}
}

func TestArithmetic_DecimalSumsAreRoundedTo34Digits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ a, b, want string }{
		{"1", "1E-40", "1.000000000000000000000000000000000"},
		{"9999999999999999999999999999999999", "1", "1.000000000000000000000000000000000E+34"},
		{"1234567890123456789012345678901234", "0.5", "1234567890123456789012345678901234"},
		{"1234567890123456789012345678901235", "0.5", "1234567890123456789012345678901236"},
		{"1234567890123456789012345678901234", "0.51", "1234567890123456789012345678901235"},
		{"9.999999999999999999999999999999999E+6144", "1E+6144", "Infinity"},
		{"Infinity", "-Infinity", "NaN"},
	} {
		t.Run(c.a+" and "+c.b, func(t *testing.T) {
			t.Parallel()
			v, _ := bsonkit.Add(bsonkit.Decimal(decimal(t, c.a)), bsonkit.Decimal(decimal(t, c.b)))
			if got := v.Decimal128().String(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestArithmetic_Rounding(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v      string
		places int
		mode   bsonkit.Rounding
		want   string
	}{
		{`2.5`, 0, bsonkit.HalfToEven, "double 2.0"},
		{`3.5`, 0, bsonkit.HalfToEven, "double 4.0"},
		{`-2.7`, 0, bsonkit.TowardsZero, "double -2.0"},
		{`19.25`, 1, bsonkit.HalfToEven, "double 19.2"},
		{`2.71828`, 3, bsonkit.HalfToEven, "double 2.718"},
		{`1234.5`, -2, bsonkit.HalfToEven, "double 1200.0"},
		{`1250`, -2, bsonkit.HalfToEven, "int 1200"},
		{`1350`, -2, bsonkit.HalfToEven, "int 1400"},
		{`-1250`, -2, bsonkit.TowardsZero, "int -1200"},
		{`7`, 3, bsonkit.HalfToEven, "int 7"},
		{`{"$numberDecimal":"1.25"}`, 1, bsonkit.HalfToEven, `decimal {"$numberDecimal":"1.2"}`},
		{`{"$numberDecimal":"1.21"}`, 0, bsonkit.Up, `decimal {"$numberDecimal":"2"}`},
		{`{"$numberDecimal":"-1.21"}`, 0, bsonkit.Down, `decimal {"$numberDecimal":"-2"}`},
		{`{"$numberDecimal":"1E-2000"}`, 0, bsonkit.HalfToEven, `decimal {"$numberDecimal":"0"}`},
		{`{"$numberDouble":"NaN"}`, 0, bsonkit.HalfToEven, `double {"$numberDouble":"NaN"}`},
	} {
		t.Run(c.v, func(t *testing.T) {
			t.Parallel()
			if got := canonical(bsonkit.Round(value(t, c.v), c.places, c.mode)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestArithmetic_WholeNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v    string
		want int64
		ok   bool
	}{
		{`5`, 5, true},
		{`{"$numberLong":"-9223372036854775808"}`, -1 << 63, true},
		{`5.0`, 5, true},
		{`5.5`, 5, false},
		{`{"$numberDouble":"9223372036854775808"}`, 1<<63 - 1, false},
		{`{"$numberDouble":"NaN"}`, 0, false},
		{`{"$numberDecimal":"5.00"}`, 5, true},
		{`{"$numberDecimal":"5.01"}`, 5, false},
		{`{"$numberDecimal":"1E+100"}`, 1<<63 - 1, false},
		{`{"$numberDecimal":"Infinity"}`, 0, false},
		{`"5"`, 0, false},
	} {
		t.Run(c.v, func(t *testing.T) {
			t.Parallel()
			if got, ok := bsonkit.WholeNumber(value(t, c.v)); got != c.want && c.ok || ok != c.ok {
				t.Errorf("got %d, %v, want %d, %v", got, ok, c.want, c.ok)
			}
		})
	}
}
