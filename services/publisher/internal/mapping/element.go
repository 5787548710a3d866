package mapping

import (
	"bytes"
	"encoding/binary"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// errMalformed is a document whose bytes are not BSON.
var errMalformed = errors.New("is not valid BSON")

// value is one BSON value in the bytes of its document.
type value struct {
	kind bson.Type
	data []byte
}

// elements walks over the elements of a document or array.
type elements struct {
	rest []byte
	err  error
	key  []byte
	value
}

// walk begins at the first element of a document.
func walk(document []byte) elements {
	if len(document) < 5 || int(int32(binary.LittleEndian.Uint32(document))) != len(document) || document[len(document)-1] != 0 {
		return elements{err: errMalformed}
	}
	return elements{rest: document[4 : len(document)-1]}
}

// next moves to the next element. It returns false at the end, and at bytes that
// are not BSON; then err is set.
func (e *elements) next() bool {
	if e.err != nil || len(e.rest) == 0 {
		return false
	}
	end := bytes.IndexByte(e.rest[1:], 0)
	if end < 0 {
		e.err = errMalformed
		return false
	}
	kind, after := bson.Type(e.rest[0]), e.rest[end+2:]
	size, ok := sizeOf(kind, after)
	if !ok || size > len(after) {
		e.err = errMalformed
		return false
	}
	e.key = e.rest[1 : end+1]
	e.value = value{kind, after[:size]}
	e.rest = after[size:]
	return true
}

// find returns the value of a field of a document.
func find(document []byte, name string) (value, bool) {
	e := walk(document)
	for e.next() {
		if string(e.key) == name {
			return e.value, true
		}
	}
	return value{}, false
}

// sizeOf returns how many bytes a value takes that starts where data starts.
// See https://bsonspec.org/spec.html, version 1.1.
func sizeOf(kind bson.Type, data []byte) (int, bool) {
	switch kind {
	case bson.TypeNull, bson.TypeUndefined, bson.TypeMinKey, bson.TypeMaxKey:
		return 0, true
	case bson.TypeBoolean:
		return 1, len(data) >= 1 && data[0] <= 1
	case bson.TypeInt32:
		return 4, true
	case bson.TypeDouble, bson.TypeInt64, bson.TypeDateTime, bson.TypeTimestamp:
		return 8, true
	case bson.TypeObjectID:
		return 12, true
	case bson.TypeDecimal128:
		return 16, true
	case bson.TypeString, bson.TypeJavaScript, bson.TypeSymbol:
		return textSize(data, 0)
	case bson.TypeDBPointer:
		return textSize(data, 12)
	case bson.TypeBinary:
		return binarySize(data)
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		size, ok := length(data)
		return size, ok && size >= 5 && size <= len(data) && data[size-1] == 0
	case bson.TypeCodeWithScope:
		size, ok := length(data)
		return size, ok && size >= 14
	case bson.TypeRegex:
		return regexSize(data)
	default:
		return 0, false
	}
}

func length(data []byte) (int, bool) {
	if len(data) < 4 {
		return 0, false
	}
	n := int(int32(binary.LittleEndian.Uint32(data)))
	return n, n >= 0
}

// textSize is the size of a length-prefixed, terminated text with more after it.
func textSize(data []byte, more int) (int, bool) {
	n, ok := length(data)
	if !ok || n < 1 || n > len(data)-4 || data[4+n-1] != 0 {
		return 0, false
	}
	return 4 + n + more, true
}

func binarySize(data []byte) (int, bool) {
	n, ok := length(data)
	return 4 + 1 + n, ok && n <= len(data)
}

func regexSize(data []byte) (int, bool) {
	pattern := bytes.IndexByte(data, 0)
	if pattern < 0 {
		return 0, false
	}
	options := bytes.IndexByte(data[pattern+1:], 0)
	return pattern + options + 2, options >= 0
}

// text returns the text of a string, code or symbol value.
func (v value) text() []byte { return v.data[4 : len(v.data)-1] }

func (v value) int32() int32 { return int32(binary.LittleEndian.Uint32(v.data)) }

func (v value) int64() int64 { return int64(binary.LittleEndian.Uint64(v.data)) }

// binary returns the subtype and the bytes of a binary value. The old generic
// subtype repeats the length in front of its bytes.
func (v value) binary() (subtype byte, data []byte, ok bool) {
	subtype, data = v.data[4], v.data[5:]
	if subtype == bson.TypeBinaryBinaryOld {
		n, ok := length(data)
		if !ok || n != len(data)-4 {
			return 0, nil, false
		}
		data = data[4:]
	}
	return subtype, data, true
}
