package expression

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func conversionOperator(name string) builder {
	switch name {
	case "$type":
		return unary(func(v bson.RawValue) (bson.RawValue, error) { return bsonkit.String(typeName(v)), nil })
	case "$isNumber":
		return unary(func(v bson.RawValue) (bson.RawValue, error) { return bsonkit.Boolean(bsonkit.IsNumber(v.Type)), nil })
	case "$convert":
		return buildConvert
	}
	if to, ok := conversionTarget(name); ok {
		return shortConversion(to)
	}
	return nil
}

// shortConversion is $toInt and its like, which are a $convert with one argument.
func shortConversion(to bson.Type) builder {
	build := unary(func(v bson.RawValue) (bson.RawValue, error) {
		if nullish(v) {
			return bsonkit.Null(), nil
		}
		return convert(v, to)
	})
	return func(c *compiler, name string, argument bson.RawValue) (operand, error) {
		if argument.Type == bson.TypeArray {
			if n := len(bsonkit.Values(argument)); n != 1 {
				return operand{}, mongoerr.New(50723, "%s requires a single argument, got %d", name, n)
			}
		}
		return build(c, name, argument)
	}
}

func conversionTarget(name string) (bson.Type, bool) {
	switch name {
	case "$toString":
		return bson.TypeString, true
	case "$toInt":
		return bson.TypeInt32, true
	case "$toLong":
		return bson.TypeInt64, true
	case "$toDouble":
		return bson.TypeDouble, true
	case "$toDecimal":
		return bson.TypeDecimal128, true
	case "$toBool":
		return bson.TypeBoolean, true
	case "$toDate":
		return bson.TypeDateTime, true
	case "$toObjectId":
		return bson.TypeObjectID, true
	}
	return 0, false
}

func buildConvert(c *compiler, name string, argument bson.RawValue) (operand, error) {
	fields, err := c.documentArguments(name, argument, mongoerr.FailedToParse, mongoerr.FailedToParse, "input", "to", "onError", "onNull")
	if err != nil {
		return operand{}, err
	}
	for _, n := range []string{"input", "to"} {
		if _, ok := fields[n]; !ok {
			return operand{}, mongoerr.New(mongoerr.FailedToParse, "Missing '%s' parameter to $convert", n)
		}
	}
	return c.folded(operands(fields), func(s *scope) (bson.RawValue, error) { return evalConvert(s, fields) }), nil
}

func evalConvert(s *scope, fields map[string]operand) (bson.RawValue, error) {
	to, err := fields["to"].in(s)
	if err != nil {
		return to, err
	}
	v, err := fields["input"].in(s)
	if err != nil {
		return v, err
	}
	var target bson.Type
	if !nullish(to) {
		if target, err = convertTo(to); err != nil {
			return v, err
		}
	}
	if onNull, ok := fields["onNull"]; ok && nullish(v) {
		return onNull.in(s)
	}
	if nullish(v) || nullish(to) {
		return bsonkit.Null(), nil
	}
	converted, err := convert(v, target)
	if onError, ok := fields["onError"]; ok && mongoerr.Is(err, mongoerr.ConversionFailure) {
		return onError.in(s)
	}
	return converted, err
}

// convertTo reads the type that $convert is to make, by name or by number.
func convertTo(to bson.RawValue) (bson.Type, error) {
	if to.Type == bson.TypeString {
		t, ok := bsonkit.TypeByName(content(to))
		if !ok {
			return 0, mongoerr.New(mongoerr.BadValue, "Unknown type name: %s", content(to))
		}
		return t, nil
	}
	n, ok := bsonkit.WholeNumber(to)
	if !bsonkit.IsNumber(to.Type) || !ok {
		return 0, mongoerr.New(mongoerr.FailedToParse, "$convert's 'to' argument must be a string or number, but is %s", typeName(to))
	}
	if n < 0 || n > 127 || bsonkit.TypeName(bson.Type(n)) == "" {
		return 0, mongoerr.New(mongoerr.FailedToParse, "In $convert, numeric value for 'to' does not correspond to a BSON type: %d", n)
	}
	return bson.Type(n), nil
}

// convert turns a value that is not null into another type.
func convert(v bson.RawValue, to bson.Type) (bson.RawValue, error) {
	if v.Type == to && v.Type != bson.TypeDateTime {
		return v, nil
	}
	switch to {
	case bson.TypeBoolean:
		return toBoolean(v), nil
	case bson.TypeString:
		return toText(v)
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128:
		return toNumber(v, to)
	case bson.TypeDateTime:
		return toDate(v)
	case bson.TypeObjectID:
		return toObjectID(v)
	}
	return v, unsupported(v, to)
}

func unsupported(v bson.RawValue, to bson.Type) error {
	return mongoerr.New(mongoerr.ConversionFailure, "Unsupported conversion from %s to %s in $convert with no onError value",
		typeName(v), bsonkit.TypeName(to))
}

func conversionFailure(format string, args ...any) error {
	return mongoerr.New(mongoerr.ConversionFailure, format+" in $convert with no onError value", args...)
}

// toBoolean is true for all that is no number.
func toBoolean(v bson.RawValue) bson.RawValue {
	return bsonkit.Boolean(!bsonkit.IsNumber(v.Type) || !bsonkit.IsZero(v))
}

func toText(v bson.RawValue) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeBoolean:
		if bsonkit.Truthy(v) {
			return bsonkit.String("true"), nil
		}
		return bsonkit.String("false"), nil
	case bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128:
		return bsonkit.String(numberText(v)), nil
	case bson.TypeObjectID:
		return bsonkit.String(v.ObjectID().Hex()), nil
	case bson.TypeDateTime:
		return bsonkit.String(formatDate(v.DateTime(), isoFormat, utc)), nil
	}
	return v, unsupported(v, bson.TypeString)
}

func toDate(v bson.RawValue) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeDateTime:
		return v, nil
	case bson.TypeString:
		return parseDate(content(v), utc)
	case bson.TypeObjectID:
		return bsonkit.Date(v.ObjectID().Timestamp()), nil
	case bson.TypeTimestamp:
		t, _ := v.Timestamp()
		return bsonkit.DateMillis(int64(t) * 1000), nil
	case bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128:
		long, err := toNumber(v, bson.TypeInt64)
		if err != nil {
			return v, err
		}
		return bsonkit.DateMillis(long.Int64()), nil
	}
	return v, unsupported(v, bson.TypeDateTime)
}

func toObjectID(v bson.RawValue) (bson.RawValue, error) {
	if v.Type != bson.TypeString {
		return v, unsupported(v, bson.TypeObjectID)
	}
	id, err := bson.ObjectIDFromHex(content(v))
	if err != nil {
		return v, conversionFailure("Failed to parse objectId '%s'", content(v))
	}
	return bsonkit.ObjectID(id), nil
}
