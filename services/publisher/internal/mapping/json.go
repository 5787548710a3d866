package mapping

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// maxDepth bounds how deeply values may be nested: as deeply as a server takes.
const maxDepth = 200

var errTooDeep = errors.New("is nested more deeply than 200 levels")

// maxJSONDepth bounds how deeply JSON is nested: readers of it take less than a
// server does, and the type of a value may be a level of its own.
const maxJSONDepth = 100

// appendJSON appends a BSON document as relaxed MongoDB Extended JSON v2, but for
// integers of 64 bits, which are always in the canonical form: in the relaxed one
// a reader takes small ones for 32 bits, and many readers round large ones.
// See https://github.com/mongodb/specifications/blob/master/source/extended-json/extended-json.md
// Fields that hidden names are left out or masked; nil names none. The error is
// errNotInJSON where the text would be read as something else.
func appendJSON(to, document []byte, hidden *rule) ([]byte, error) {
	return appendDocument(to, document, hidden, 0)
}

func appendDocument(to, document []byte, hidden *rule, depth int) ([]byte, error) {
	if depth > maxJSONDepth {
		return nil, errNotInJSON
	}
	to = append(to, '{')
	e := walk(document)
	for first := true; e.next(); {
		field := hidden.field(e.key)
		if field.drops() {
			continue
		}
		if ambiguous(e.key) {
			return nil, errNotInJSON
		}
		if !first {
			to = append(to, ',')
		}
		first = false
		to = appendText(to, e.key)
		to = append(to, ':')
		var err error
		if to, err = appendValue(to, e.value, field, depth+1); err != nil {
			return nil, err
		}
	}
	return append(to, '}'), e.err
}

// appendArray appends an array. What is hidden in a document is hidden in every
// document of an array.
func appendArray(to, array []byte, hidden *rule, depth int) ([]byte, error) {
	if depth > maxJSONDepth {
		return nil, errNotInJSON
	}
	to = append(to, '[')
	e := walk(array)
	for first := true; e.next(); first = false {
		if !first {
			to = append(to, ',')
		}
		var err error
		if to, err = appendValue(to, e.value, hidden, depth+1); err != nil {
			return nil, err
		}
	}
	return append(to, ']'), e.err
}

func appendValue(to []byte, v value, hidden *rule, depth int) ([]byte, error) {
	if hidden.masks() {
		return append(to, masked...), nil
	}
	switch v.kind {
	case bson.TypeString:
		return appendText(to, v.text()), nil
	case bson.TypeInt32:
		return strconv.AppendInt(to, int64(v.int32()), 10), nil
	case bson.TypeInt64:
		to = append(to, `{"$numberLong":"`...)
		to = strconv.AppendInt(to, v.int64(), 10)
		return append(to, `"}`...), nil
	case bson.TypeDouble:
		return appendDouble(to, math.Float64frombits(binary.LittleEndian.Uint64(v.data))), nil
	case bson.TypeBoolean:
		return strconv.AppendBool(to, v.data[0] == 1), nil
	case bson.TypeNull:
		return append(to, "null"...), nil
	case bson.TypeEmbeddedDocument:
		return appendDocument(to, v.data, hidden, depth)
	case bson.TypeArray:
		return appendArray(to, v.data, hidden, depth)
	case bson.TypeDateTime:
		return appendDate(to, v.int64()), nil
	case bson.TypeObjectID:
		return appendObjectID(to, v.data), nil
	default:
		return appendRare(to, v, depth)
	}
}

// appendRare appends a value of the types that events seldom have.
func appendRare(to []byte, v value, depth int) ([]byte, error) {
	switch v.kind {
	case bson.TypeBinary:
		return appendBinary(to, v)
	case bson.TypeDecimal128:
		low, high := binary.LittleEndian.Uint64(v.data), binary.LittleEndian.Uint64(v.data[8:])
		to = append(to, `{"$numberDecimal":"`...)
		to = append(to, bson.NewDecimal128(high, low).String()...)
		return append(to, `"}`...), nil
	case bson.TypeTimestamp:
		to = append(to, `{"$timestamp":{"t":`...)
		to = strconv.AppendUint(to, uint64(binary.LittleEndian.Uint32(v.data[4:])), 10)
		to = append(to, `,"i":`...)
		to = strconv.AppendUint(to, uint64(binary.LittleEndian.Uint32(v.data)), 10)
		return append(to, "}}"...), nil
	case bson.TypeRegex:
		return appendRegex(to, v), nil
	case bson.TypeJavaScript:
		return append(appendText(append(to, `{"$code":`...), v.text()), '}'), nil
	case bson.TypeSymbol:
		return append(appendText(append(to, `{"$symbol":`...), v.text()), '}'), nil
	case bson.TypeCodeWithScope:
		return appendCodeWithScope(to, v, depth)
	case bson.TypeDBPointer:
		n, _ := length(v.data)
		to = append(to, `{"$dbPointer":{"$ref":`...)
		to = appendText(to, v.data[4:4+n-1])
		to = append(to, `,"$id":`...)
		return append(appendObjectID(to, v.data[4+n:]), "}}"...), nil
	case bson.TypeUndefined:
		return append(to, `{"$undefined":true}`...), nil
	case bson.TypeMinKey:
		return append(to, `{"$minKey":1}`...), nil
	case bson.TypeMaxKey:
		return append(to, `{"$maxKey":1}`...), nil
	default:
		return nil, errMalformed
	}
}

func appendDouble(to []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(to, `{"$numberDouble":"NaN"}`...)
	case math.IsInf(f, 1):
		return append(to, `{"$numberDouble":"Infinity"}`...)
	case math.IsInf(f, -1):
		return append(to, `{"$numberDouble":"-Infinity"}`...)
	}
	begin := len(to)
	to = strconv.AppendFloat(to, f, 'G', -1, 64)
	if !strings.ContainsAny(string(to[begin:]), "E.") {
		to = append(to, ".0"...) // or a reader takes it for an integer
	}
	return to
}

// appendDate appends a time in milliseconds of the Unix epoch.
func appendDate(to []byte, millis int64) []byte {
	t := time.Unix(millis/1e3, millis%1e3*1e6).UTC()
	if t.Year() < 1970 || t.Year() > 9999 {
		to = append(to, `{"$date":{"$numberLong":"`...)
		to = strconv.AppendInt(to, millis, 10)
		return append(to, `"}}`...)
	}
	to = append(to, `{"$date":"`...)
	to = t.AppendFormat(to, "2006-01-02T15:04:05.999Z07:00")
	return append(to, `"}`...)
}

func appendObjectID(to, id []byte) []byte {
	to = append(to, `{"$oid":"`...)
	to = hex.AppendEncode(to, id)
	return append(to, `"}`...)
}

func appendBinary(to []byte, v value) ([]byte, error) {
	subtype, data, ok := v.binary()
	if !ok {
		return nil, errMalformed
	}
	to = append(to, `{"$binary":{"base64":"`...)
	to = base64.StdEncoding.AppendEncode(to, data)
	to = append(to, `","subType":"`...)
	to = hex.AppendEncode(to, []byte{subtype})
	return append(to, `"}}`...), nil
}

func appendRegex(to []byte, v value) []byte {
	pattern, flags, _ := strings.Cut(string(v.data), "\x00")
	sorted := []rune(strings.TrimSuffix(flags, "\x00"))
	slices.Sort(sorted)
	to = append(to, `{"$regularExpression":{"pattern":`...)
	to = appendText(to, []byte(pattern))
	to = append(to, `,"options":`...)
	to = appendText(to, []byte(string(sorted)))
	return append(to, "}}"...)
}

func appendCodeWithScope(to []byte, v value, depth int) ([]byte, error) {
	inner := v.data[4:]
	size, ok := textSize(inner, 0)
	if !ok || size > len(inner) {
		return nil, errMalformed
	}
	to = append(to, `{"$code":`...)
	to = appendText(to, inner[4:size-1])
	to = append(to, `,"$scope":`...)
	to, err := appendDocument(to, inner[size:], nil, depth)
	return append(to, '}'), err
}

const hexDigits = "0123456789abcdef"

// appendText appends a JSON string (RFC 8259, section 7). Bytes that are not
// UTF-8 become the replacement character. The line separators U+2028 and U+2029
// are escaped, because JavaScript once took them for line ends.
func appendText(to, text []byte) []byte {
	to = append(to, '"')
	begin := 0
	for i := 0; i < len(text); {
		b := text[i]
		if b < utf8.RuneSelf {
			if b >= 0x20 && b != '"' && b != '\\' {
				i++
				continue
			}
			to = append(to, text[begin:i]...)
			to = appendEscape(to, b)
			i++
			begin = i
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		invalid := r == utf8.RuneError && size == 1
		if !invalid && r != '\u2028' && r != '\u2029' {
			i += size
			continue
		}
		to = append(to, text[begin:i]...)
		if invalid {
			to = append(to, `\ufffd`...)
		} else {
			to = append(to, `\u202`...)
			to = append(to, hexDigits[r&0xF])
		}
		i += size
		begin = i
	}
	to = append(to, text[begin:]...)
	return append(to, '"')
}

func appendEscape(to []byte, b byte) []byte {
	switch b {
	case '"', '\\':
		return append(to, '\\', b)
	case '\n':
		return append(to, `\n`...)
	case '\r':
		return append(to, `\r`...)
	case '\t':
		return append(to, `\t`...)
	case '\b':
		return append(to, `\b`...)
	case '\f':
		return append(to, `\f`...)
	default:
		return append(to, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&0xF])
	}
}
