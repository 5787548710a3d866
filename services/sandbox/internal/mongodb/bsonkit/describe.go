package bsonkit

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// describeLimit keeps error texts short whatever they quote.
const describeLimit = 160

// Describe writes a value for an error text, as the server does: { a: 1 }.
func Describe(v bson.RawValue) string {
	var b strings.Builder
	describe(&b, v, 0)
	if b.Len() > describeLimit {
		return strings.ToValidUTF8(b.String()[:describeLimit], "") + "..."
	}
	return b.String()
}

// DescribeFields writes fields that are not in a document yet.
func DescribeFields(fields bson.D) string {
	doc, err := bson.Marshal(fields)
	if err != nil {
		return "{}"
	}
	return Describe(Document(doc))
}

// describeDepth is as deep as Describe looks.
const describeDepth = 20

func describe(b *strings.Builder, v bson.RawValue, depth int) {
	if b.Len() > describeLimit {
		return
	}
	switch v.Type {
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		describeAll(b, v, depth)
	case bson.TypeString:
		b.WriteByte('"')
		b.Write(Text(v)[:min(len(Text(v)), describeLimit)])
		b.WriteByte('"')
	case bson.TypeDouble:
		b.WriteString(niceDouble(v.Double()))
	case bson.TypeInt32, bson.TypeInt64:
		n, _ := Truncated(v)
		b.WriteString(strconv.FormatInt(n, 10))
	default:
		b.WriteString(describeScalar(v))
	}
}

func describeAll(b *strings.Builder, v bson.RawValue, depth int) {
	opening, closing := "{", "}"
	if v.Type == bson.TypeArray {
		opening, closing = "[", "]"
	}
	b.WriteString(opening)
	separator := " "
	for it := Iterate(v.Value); depth < describeDepth && b.Len() <= describeLimit && it.Next(); separator = ", " {
		b.WriteString(separator)
		if v.Type == bson.TypeEmbeddedDocument {
			b.Write(it.Key())
			b.WriteString(": ")
		}
		describe(b, it.Value(), depth+1)
	}
	if separator == ", " {
		b.WriteByte(' ')
	}
	b.WriteString(closing)
}

func describeScalar(v bson.RawValue) string {
	switch v.Type {
	case Missing:
		return "missing"
	case bson.TypeObjectID:
		return "ObjectId('" + v.ObjectID().Hex() + "')"
	case bson.TypeBoolean:
		return strconv.FormatBool(v.Boolean())
	case bson.TypeDateTime:
		return "new Date(" + strconv.FormatInt(v.DateTime(), 10) + ")"
	case bson.TypeTimestamp:
		t, i := v.Timestamp()
		return fmt.Sprintf("Timestamp(%d, %d)", t, i)
	case bson.TypeDecimal128:
		return v.Decimal128().String()
	case bson.TypeBinary:
		subtype, data := v.Binary()
		return fmt.Sprintf("BinData(%d, %s)", subtype, strings.ToUpper(hex.EncodeToString(data[:min(len(data), describeLimit)])))
	case bson.TypeRegex:
		pattern, options := v.Regex()
		return "/" + pattern + "/" + options
	case bson.TypeMinKey:
		return "MinKey"
	case bson.TypeMaxKey:
		return "MaxKey"
	case bson.TypeNull, bson.TypeUndefined:
		return TypeName(v.Type)
	}
	return v.String()
}

// niceDouble shows that a number is a double.
func niceDouble(f float64) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+"))
	}
	s := strconv.FormatFloat(f, 'g', 16, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}
