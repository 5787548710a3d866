package bsonkit

import (
	"bytes"
	"cmp"
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// order is a type's place among the others. Types of the same order compare by
// value: all numbers, strings with symbols.
type order byte

const (
	orderEnd    order = 0 // ends a document or array inside a key, sorts before every element
	orderMinKey order = iota
	orderUndefined
	orderNull
	orderNumber
	orderString
	orderDocument
	orderArray
	orderBinary
	orderObjectID
	orderBoolean
	orderDate
	orderTimestamp
	orderRegex
	orderDBPointer
	orderCode
	orderCodeWithScope
	orderMaxKey
)

// orderOf puts a missing value with null, as sorts and indexes do.
func orderOf(t bson.Type) order {
	switch t {
	case bson.TypeMinKey:
		return orderMinKey
	case bson.TypeUndefined:
		return orderUndefined
	case bson.TypeNull, Missing:
		return orderNull
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128:
		return orderNumber
	case bson.TypeString, bson.TypeSymbol:
		return orderString
	case bson.TypeEmbeddedDocument:
		return orderDocument
	case bson.TypeArray:
		return orderArray
	case bson.TypeBinary:
		return orderBinary
	case bson.TypeObjectID:
		return orderObjectID
	case bson.TypeBoolean:
		return orderBoolean
	case bson.TypeDateTime:
		return orderDate
	case bson.TypeTimestamp:
		return orderTimestamp
	case bson.TypeRegex:
		return orderRegex
	case bson.TypeDBPointer:
		return orderDBPointer
	case bson.TypeJavaScript:
		return orderCode
	case bson.TypeCodeWithScope:
		return orderCodeWithScope
	}
	return orderMaxKey
}

// SameOrder reports whether values of the two types compare by value rather
// than by type. Filters compare only such values: "type bracketing".
func SameOrder(a, b bson.Type) bool { return orderOf(a) == orderOf(b) }

// Equal reports whether Compare finds no difference.
func Equal(a, b bson.RawValue) bool {
	if a.Type == b.Type && bytes.Equal(a.Value, b.Value) {
		return true
	}
	return Compare(a, b) == 0
}

// Compare gives BSON's total order of values: -1, 0 or 1. Numbers of any type
// compare by their exact value, NaN before all others; a missing value is
// equal to null; documents compare element by element, each first by type,
// then by name, then by value.
func Compare(a, b bson.RawValue) int {
	o := orderOf(a.Type)
	if c := cmp.Compare(o, orderOf(b.Type)); c != 0 {
		return c
	}
	return compareSame(o, a, b)
}

func compareSame(o order, a, b bson.RawValue) int {
	switch o {
	case orderNumber:
		return compareNumbers(a, b)
	case orderString, orderCode:
		return bytes.Compare(text(a.Value), text(b.Value))
	case orderDocument:
		return compareDocuments(a.Value, b.Value, true)
	case orderArray:
		return compareDocuments(a.Value, b.Value, false)
	case orderBinary:
		return compareBinary(a.Value, b.Value)
	case orderObjectID, orderBoolean:
		return bytes.Compare(a.Value, b.Value)
	case orderDate:
		return cmp.Compare(int64(word(a.Value)), int64(word(b.Value)))
	case orderTimestamp:
		return cmp.Compare(word(a.Value), word(b.Value))
	case orderRegex:
		return compareRegexes(a.Value, b.Value)
	case orderDBPointer:
		return cmp.Or(cmp.Compare(len(a.Value), len(b.Value)), bytes.Compare(a.Value, b.Value))
	case orderCodeWithScope:
		return compareScopedCode(a.Value, b.Value)
	}
	return 0
}

func compareDocuments(a, b []byte, names bool) int {
	x, y := Iterate(a), Iterate(b)
	for {
		more, others := x.Next(), y.Next()
		if !more || !others {
			return compareBools(more, others)
		}
		o := orderOf(x.value.Type)
		if c := cmp.Compare(o, orderOf(y.value.Type)); c != 0 {
			return c
		}
		if names {
			if c := bytes.Compare(x.key, y.key); c != 0 {
				return c
			}
		}
		if c := compareSame(o, x.value, y.value); c != 0 {
			return c
		}
	}
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// compareBinary goes by length, then by subtype, then by content.
func compareBinary(a, b []byte) int {
	if c := cmp.Compare(len(a), len(b)); c != 0 {
		return c
	}
	return bytes.Compare(a[min(4, len(a)):], b[min(4, len(b)):])
}

func compareRegexes(a, b []byte) int {
	pa, oa := regexParts(a)
	pb, ob := regexParts(b)
	return cmp.Or(bytes.Compare(pa, pb), bytes.Compare(oa, ob))
}

func compareScopedCode(a, b []byte) int {
	ca, sa := scopedCodeParts(a)
	cb, sb := scopedCodeParts(b)
	return cmp.Or(bytes.Compare(ca, cb), compareDocuments(sa, sb, true))
}

// text is the content of a string, symbol or code value.
func text(b []byte) []byte {
	if len(b) < 5 {
		return nil
	}
	return b[4 : len(b)-1]
}

func word(b []byte) uint64 {
	if len(b) < 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

func regexParts(b []byte) (pattern, options []byte) {
	pattern, options, _ = bytes.Cut(b, []byte{0})
	return pattern, bytes.TrimSuffix(options, []byte{0})
}

func scopedCodeParts(b []byte) (code, scope []byte) {
	if len(b) < 8 {
		return nil, nil
	}
	n := lengthPlus(b[4:], 4, 1)
	if n < 0 || n > len(b)-4 {
		return nil, nil
	}
	return text(b[4 : 4+n]), b[4+n:]
}

// Contains reports whether one of the values is equal to v.
func Contains(values []bson.RawValue, v bson.RawValue) bool {
	for _, w := range values {
		if Equal(v, w) {
			return true
		}
	}
	return false
}
