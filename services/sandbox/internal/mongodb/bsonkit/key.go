package bsonkit

import (
	"bytes"
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// AppendKey appends a key for v that sorts, compared as bytes, where Compare
// puts v. Equal values have equal keys whatever their types, so a key also
// serves as a map key. No key is a prefix of another value's key, so keys can
// be joined to a compound key that sorts field by field.
//
// Keys say nothing about a number's type or a missing value's absence: they
// cannot be turned back into values.
func AppendKey(dst []byte, v bson.RawValue) []byte {
	o := orderOf(v.Type)
	return appendBody(append(dst, byte(o)), o, v)
}

// AppendKeyDesc is AppendKey for a descending field: the order is reversed.
func AppendKeyDesc(dst []byte, v bson.RawValue) []byte {
	start := len(dst)
	dst = AppendKey(dst, v)
	invert(dst[start:])
	return dst
}

// TypeKey begins the keys of all values that compare with those of type t by
// value, and of no others.
func TypeKey(t bson.Type) []byte { return []byte{byte(orderOf(t))} }

// TextEnd is how many bytes at the end of a text's key mark the end.
const TextEnd = 2

func invert(b []byte) {
	for i := range b {
		b[i] = ^b[i]
	}
}

func appendBody(dst []byte, o order, v bson.RawValue) []byte {
	switch o {
	case orderNumber:
		return appendNumber(dst, v)
	case orderString, orderCode:
		return appendText(dst, text(v.Value))
	case orderDocument:
		return appendDocument(dst, v.Value, true)
	case orderArray:
		return appendDocument(dst, v.Value, false)
	case orderBinary:
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(v.Value)))
		return append(dst, v.Value[min(4, len(v.Value)):]...)
	case orderObjectID, orderBoolean:
		return append(dst, v.Value...)
	case orderDate:
		return binary.BigEndian.AppendUint64(dst, word(v.Value)^1<<63)
	case orderTimestamp:
		return binary.BigEndian.AppendUint64(dst, word(v.Value))
	case orderRegex:
		pattern, options := regexParts(v.Value)
		dst = append(append(dst, pattern...), 0)
		return append(append(dst, options...), 0)
	case orderDBPointer:
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(v.Value)))
		return append(dst, v.Value...)
	case orderCodeWithScope:
		code, scope := scopedCodeParts(v.Value)
		return appendDocument(appendText(dst, code), scope, true)
	}
	return dst
}

// appendText marks a zero byte inside the text as 0x00 0xff and the end as
// 0x00 0x00, so a text sorts before those it begins.
func appendText(dst, text []byte) []byte {
	for {
		zero := bytes.IndexByte(text, 0)
		if zero < 0 {
			return append(append(dst, text...), 0, 0)
		}
		dst = append(append(dst, text[:zero]...), 0, 0xff)
		text = text[zero+1:]
	}
}

func appendDocument(dst, doc []byte, names bool) []byte {
	for it := Iterate(doc); it.Next(); {
		o := orderOf(it.value.Type)
		dst = append(dst, byte(o))
		if names {
			dst = append(append(dst, it.key...), 0)
		}
		dst = appendBody(dst, o, it.value)
	}
	return append(dst, byte(orderEnd))
}

// KeyAfter returns the least byte string greater than every string that begins
// with key; nil, meaning no upper limit, if there is none.
func KeyAfter(key []byte) []byte {
	for i := len(key) - 1; i >= 0; i-- {
		if key[i] != 0xff {
			after := append([]byte(nil), key[:i+1]...)
			after[i]++
			return after
		}
	}
	return nil
}
