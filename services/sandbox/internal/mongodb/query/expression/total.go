package expression

import (
	"math"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

// total is a sum of numbers as the server makes it: decimals by themselves, and
// all others with twice the precision of a double, so that the order in which
// they come makes no difference. Its zero value is the int 0.
type total struct {
	widest bson.Type
	// decimals is missing where there are none.
	decimals bson.RawValue
	// whole is the exact sum while only integers came, unless overflowed.
	whole      int64
	overflowed bool
	// high and low are the sum of doubles; plain the same, for what is not finite.
	high, low, plain float64
}

func (t *total) add(v bson.RawValue) {
	t.widest = wider(t.widest, v.Type)
	switch v.Type {
	case bson.TypeDecimal128:
		if t.decimals.Type == bsonkit.Missing {
			t.decimals = v
			return
		}
		t.decimals, _ = bsonkit.Add(t.decimals, v) // decimals have no limit to leave
	case bson.TypeDouble:
		t.addDouble(v.Double())
	default:
		n, _ := bsonkit.Truncated(v)
		sum := t.whole + n
		t.overflowed = t.overflowed || (t.whole < 0) == (n < 0) && (sum < 0) != (n < 0)
		t.whole = sum
		upper := n >> 32 << 32
		t.addDouble(float64(upper))
		t.addDouble(float64(n - upper))
	}
}

// addDouble keeps what the rounding of a sum loses.
func (t *total) addDouble(f float64) {
	t.plain += f
	high, lost := twoSum(f, t.high)
	t.high, t.low = twoSum(high, lost+t.low)
}

// twoSum is a sum and its rounding error (Knuth).
func twoSum(a, b float64) (sum, lost float64) {
	sum = a + b
	c := sum - a
	return sum, (a - (sum - c)) + (b - c)
}

func wider(a, b bson.Type) bson.Type {
	rank := func(t bson.Type) int {
		switch t {
		case bson.TypeDecimal128:
			return 3
		case bson.TypeDouble:
			return 2
		case bson.TypeInt64:
			return 1
		}
		return 0
	}
	if rank(b) > rank(a) || a == bsonkit.Missing {
		return b
	}
	return a
}

// value is the sum in the widest type of its parts; a double where integers
// leave their range.
func (t *total) value() bson.RawValue {
	switch {
	case t.widest == bsonkit.Missing:
		return bsonkit.Int32(0)
	case t.widest == bson.TypeDecimal128:
		v, _ := bsonkit.Add(t.decimals, bsonkit.Decimal(exactDecimal(t.double())))
		return v
	case t.widest == bson.TypeDouble || t.overflowed:
		return bsonkit.Double(t.double())
	case t.widest == bson.TypeInt32 && t.whole == int64(int32(t.whole)):
		return bsonkit.Int32(int32(t.whole))
	}
	return bsonkit.Int64(t.whole)
}

func (t *total) double() float64 {
	if math.IsNaN(t.high) || math.IsInf(t.high, 0) {
		return t.plain
	}
	return t.high
}

// decimalDigits is the precision of a decimal.
const decimalDigits = 34

// exactDecimal has all digits of a double that a decimal holds.
func exactDecimal(f float64) bson.Decimal128 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return bsonkit.ToDecimal(bsonkit.Double(f))
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'E', decimalDigits-1, 64), "E")
	mantissa = strings.TrimSuffix(strings.TrimRight(mantissa, "0"), ".")
	d, err := bson.ParseDecimal128(mantissa + "E" + exponent)
	if err != nil {
		return bsonkit.ToDecimal(bsonkit.Double(f))
	}
	return d
}
