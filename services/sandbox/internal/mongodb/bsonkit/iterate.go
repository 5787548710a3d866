package bsonkit

import (
	"bytes"
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Missing is the bson type of the zero RawValue: no value at all.
const Missing = bson.Type(0)

// Iterator walks the elements of a document or array in order, without
// allocating. It ends at the first element that is malformed.
//
//	for it := bsonkit.Iterate(doc); it.Next(); {
//		use(it.Key(), it.Value())
//	}
type Iterator struct {
	rest  []byte
	key   []byte
	value bson.RawValue
}

// Iterate starts at the first element of a document. The bytes of an array
// value may be given too: its keys are then the indexes.
func Iterate(doc []byte) Iterator {
	if len(doc) < 5 {
		return Iterator{}
	}
	if n := int(binary.LittleEndian.Uint32(doc)); n >= 5 && n < len(doc) {
		doc = doc[:n]
	}
	return Iterator{rest: doc[4:]}
}

// Next moves to the next element and reports whether there is one.
func (it *Iterator) Next() bool {
	if len(it.rest) < 2 || it.rest[0] == 0 {
		return false
	}
	end := bytes.IndexByte(it.rest[1:], 0)
	if end < 0 {
		it.rest = nil
		return false
	}
	t := bson.Type(it.rest[0])
	body := it.rest[end+2:]
	n := valueSize(t, body)
	if n < 0 || n > len(body) {
		it.rest = nil
		return false
	}
	it.key = it.rest[1 : end+1]
	it.value = bson.RawValue{Type: t, Value: body[:n:n]}
	it.rest = body[n:]
	return true
}

// Key is the current element's name. It shares the document's memory.
func (it *Iterator) Key() []byte { return it.key }

// Value is the current element's value. It shares the document's memory.
func (it *Iterator) Value() bson.RawValue { return it.value }

// valueSize is how many bytes a value of type t takes at the start of b, or -1
// when that cannot be told. The answer may be more than there is in b.
func valueSize(t bson.Type, b []byte) int {
	switch t {
	case bson.TypeDouble, bson.TypeDateTime, bson.TypeInt64, bson.TypeTimestamp:
		return 8
	case bson.TypeInt32:
		return 4
	case bson.TypeBoolean:
		return 1
	case bson.TypeObjectID:
		return 12
	case bson.TypeDecimal128:
		return 16
	case bson.TypeNull, bson.TypeUndefined, bson.TypeMinKey, bson.TypeMaxKey:
		return 0
	case bson.TypeString, bson.TypeSymbol, bson.TypeJavaScript:
		return lengthPlus(b, 4, 1)
	case bson.TypeEmbeddedDocument, bson.TypeArray, bson.TypeCodeWithScope:
		return lengthPlus(b, 0, 5)
	case bson.TypeBinary:
		return lengthPlus(b, 5, 0)
	case bson.TypeDBPointer:
		return lengthPlus(b, 16, 1)
	case bson.TypeRegex:
		return regexSize(b)
	}
	return -1
}

// lengthPlus reads an int32 length that must be at least least and adds what
// the length does not count.
func lengthPlus(b []byte, more, least int) int {
	if len(b) < 4 {
		return -1
	}
	n := int(int32(binary.LittleEndian.Uint32(b)))
	if n < least {
		return -1
	}
	return n + more
}

func regexSize(b []byte) int {
	pattern := bytes.IndexByte(b, 0)
	if pattern < 0 {
		return -1
	}
	options := bytes.IndexByte(b[pattern+1:], 0)
	if options < 0 {
		return -1
	}
	return pattern + options + 2
}
