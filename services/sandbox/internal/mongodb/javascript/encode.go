package javascript

import (
	"encoding/base64"
	"encoding/hex"
	"math"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

// encode writes a value as the prelude reads it.
func encode(v bson.RawValue) string { return string(appendValue(nil, v)) }

func appendValue(dst []byte, v bson.RawValue) []byte {
	switch v.Type {
	case bson.TypeDouble:
		return appendDouble(dst, v.Double())
	case bson.TypeString, bson.TypeSymbol:
		return appendText(dst, bsonkit.Text(v))
	case bson.TypeEmbeddedDocument:
		return appendFields(dst, v.Value)
	case bson.TypeArray:
		return appendElements(dst, v.Value)
	case bson.TypeBoolean:
		return strconv.AppendBool(dst, v.Boolean())
	case bson.TypeNull:
		return append(dst, "null"...)
	}
	dst = append(dst, `{"\u0000":"`...)
	dst = appendParts(dst, v)
	return append(dst, '}')
}

// appendParts writes the name of a type that JSON does not have, and what a value
// of it is made of.
func appendParts(dst []byte, v bson.RawValue) []byte {
	switch v.Type {
	case bson.TypeInt32:
		return strconv.AppendInt(append(dst, `int","v":`...), int64(v.Int32()), 10)
	case bson.TypeInt64:
		return append(strconv.AppendInt(append(dst, `long","v":"`...), v.Int64(), 10), '"')
	case bson.TypeDecimal128:
		return append(append(append(dst, `decimal","v":"`...), v.Decimal128().String()...), '"')
	case bson.TypeObjectID:
		return append(hex.AppendEncode(append(dst, `oid","v":"`...), v.Value[:12]), '"')
	case bson.TypeDateTime:
		return strconv.AppendInt(append(dst, `date","v":`...), v.DateTime(), 10)
	case bson.TypeBinary:
		subtype, data := v.Binary()
		dst = strconv.AppendInt(append(dst, `binary","t":`...), int64(subtype), 10)
		return append(base64.StdEncoding.AppendEncode(append(dst, `,"v":"`...), data), '"')
	case bson.TypeTimestamp:
		t, i := v.Timestamp()
		dst = strconv.AppendUint(append(dst, `timestamp","t":`...), uint64(t), 10)
		return strconv.AppendUint(append(dst, `,"v":`...), uint64(i), 10)
	case bson.TypeRegex:
		pattern, options := v.Regex()
		dst = appendText(append(dst, `regexp","t":`...), []byte(options))
		return appendText(append(dst, `,"v":`...), []byte(pattern))
	case bson.TypeJavaScript:
		return appendText(append(dst, `code","v":`...), bsonkit.Text(v))
	case bson.TypeCodeWithScope:
		code, scope := v.CodeWithScope()
		dst = appendText(append(dst, `code","v":`...), []byte(code))
		return appendFields(append(dst, `,"s":`...), scope)
	case bson.TypeDBPointer:
		name, id := v.DBPointer()
		dst = appendText(append(dst, `pointer","t":`...), []byte(name))
		return append(hex.AppendEncode(append(dst, `,"v":"`...), id[:]), '"')
	case bson.TypeMinKey:
		return append(dst, `min"`...)
	case bson.TypeMaxKey:
		return append(dst, `max"`...)
	}
	return append(dst, `undefined"`...)
}

func appendDouble(dst []byte, f float64) []byte {
	if f == 0 && math.Signbit(f) || math.IsNaN(f) || math.IsInf(f, 0) {
		name := "NaN"
		switch {
		case f == 0:
			name = "-0"
		case math.IsInf(f, 1):
			name = "Infinity"
		case math.IsInf(f, -1):
			name = "-Infinity"
		}
		return append(append(append(dst, `{"\u0000":"double","v":"`...), name...), `"}`...)
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64)
}

func appendFields(dst []byte, doc bson.Raw) []byte {
	dst = append(dst, '{')
	first := true
	for it := bsonkit.Iterate(doc); it.Next(); first = false {
		if !first {
			dst = append(dst, ',')
		}
		dst = append(appendText(dst, it.Key()), ':')
		dst = appendValue(dst, it.Value())
	}
	return append(dst, '}')
}

func appendElements(dst []byte, array bson.Raw) []byte {
	dst = append(dst, '[')
	first := true
	for it := bsonkit.Iterate(array); it.Next(); first = false {
		if !first {
			dst = append(dst, ',')
		}
		dst = appendValue(dst, it.Value())
	}
	return append(dst, ']')
}

// appendText writes a text of JSON. Bytes that are no UTF-8 are left to the
// engine, which replaces them.
func appendText(dst, text []byte) []byte {
	dst = append(dst, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = append(dst, `\u00`...)
			dst = append(dst, "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
