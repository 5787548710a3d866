package expression

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

// numberText writes a number as $toString does.
func numberText(v bson.RawValue) string {
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64:
		n, _ := bsonkit.Truncated(v)
		return strconv.FormatInt(n, 10)
	case bson.TypeDecimal128:
		return v.Decimal128().String()
	}
	f := bsonkit.Float(v)
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(f, 'g', 16, 64)
}

func timestampText(t, i uint32) string {
	return "Timestamp(" + strconv.FormatUint(uint64(t), 10) + ", " + strconv.FormatUint(uint64(i), 10) + ")"
}

// toNumber converts to one of the number types. Integers cut off fractions.
func toNumber(v bson.RawValue, to bson.Type) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeString:
		return parseNumber(content(v), to)
	case bson.TypeBoolean:
		n := int32(0)
		if bsonkit.Truthy(v) {
			n = 1
		}
		return toNumber(bsonkit.Int32(n), to)
	case bson.TypeDateTime:
		if to == bson.TypeInt32 {
			return v, unsupported(v, to)
		}
		return toNumber(bsonkit.Int64(v.DateTime()), to)
	}
	if !bsonkit.IsNumber(v.Type) {
		return v, unsupported(v, to)
	}
	switch to {
	case bson.TypeDouble:
		f := bsonkit.Float(v)
		if math.IsInf(f, 0) && v.Type == bson.TypeDecimal128 && v.Decimal128().IsInf() == 0 {
			return v, conversionFailure("Conversion would overflow target type")
		}
		return bsonkit.Double(f), nil
	case bson.TypeDecimal128:
		return bsonkit.Decimal(bsonkit.ToDecimal(v)), nil
	}
	return toInteger(v, to)
}

func toInteger(v bson.RawValue, to bson.Type) (bson.RawValue, error) {
	if bsonkit.IsNaN(v) {
		return v, conversionFailure("Attempt to convert NaN value to integer type")
	}
	n, ok := bsonkit.Truncated(v)
	if !ok {
		return v, conversionFailure("Attempt to convert infinity value to integer type")
	}
	// A value that was limited to the range is not near its truncation.
	whole := bsonkit.Round(v, 0, bsonkit.TowardsZero)
	if bsonkit.Compare(whole, bsonkit.Int64(n)) != 0 || to == bson.TypeInt32 && n != int64(int32(n)) {
		return v, conversionFailure("Conversion would overflow target type")
	}
	if to == bson.TypeInt32 {
		return bsonkit.Int32(int32(n)), nil
	}
	return bsonkit.Int64(n), nil
}

func parseNumber(text string, to bson.Type) (bson.RawValue, error) {
	failed := func(err error) error {
		reason := "Bad digit"
		if errors.Is(err, strconv.ErrRange) {
			reason = "Out of range"
		}
		return conversionFailure("Failed to parse number '%s': %s", text, reason)
	}
	if strings.ContainsAny(text, "_ \t\n") || strings.HasPrefix(strings.TrimLeft(text, "+-"), "0x") {
		return bson.RawValue{}, failed(nil)
	}
	switch to {
	case bson.TypeInt32:
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return bson.RawValue{}, failed(err)
		}
		return bsonkit.Int32(int32(n)), nil
	case bson.TypeInt64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return bson.RawValue{}, failed(err)
		}
		return bsonkit.Int64(n), nil
	case bson.TypeDouble:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return bson.RawValue{}, failed(err)
		}
		return bsonkit.Double(f), nil
	}
	d, err := bson.ParseDecimal128(text)
	if err != nil {
		return bson.RawValue{}, failed(err)
	}
	return bsonkit.Decimal(d), nil
}
