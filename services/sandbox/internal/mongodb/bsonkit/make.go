package bsonkit

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Null makes a null value.
func Null() bson.RawValue { return bson.RawValue{Type: bson.TypeNull} }

// Int32 makes an int32 value.
func Int32(i int32) bson.RawValue {
	return bson.RawValue{Type: bson.TypeInt32, Value: binary.LittleEndian.AppendUint32(nil, uint32(i))}
}

// Int64 makes an int64 value.
func Int64(i int64) bson.RawValue {
	return bson.RawValue{Type: bson.TypeInt64, Value: binary.LittleEndian.AppendUint64(nil, uint64(i))}
}

// Integer makes an int32 value, or an int64 where i needs one.
func Integer(i int64) bson.RawValue {
	if i == int64(int32(i)) {
		return Int32(int32(i))
	}
	return Int64(i)
}

// Double makes a double value.
func Double(f float64) bson.RawValue {
	return bson.RawValue{Type: bson.TypeDouble, Value: binary.LittleEndian.AppendUint64(nil, math.Float64bits(f))}
}

// Decimal makes a decimal128 value.
func Decimal(d bson.Decimal128) bson.RawValue {
	high, low := d.GetBytes()
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, 16), low)
	return bson.RawValue{Type: bson.TypeDecimal128, Value: binary.LittleEndian.AppendUint64(b, high)}
}

// Boolean makes a boolean value.
func Boolean(b bool) bson.RawValue {
	v := byte(0)
	if b {
		v = 1
	}
	return bson.RawValue{Type: bson.TypeBoolean, Value: []byte{v}}
}

// String makes a string value.
func String(s string) bson.RawValue {
	b := make([]byte, 0, len(s)+5)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s)+1))
	return bson.RawValue{Type: bson.TypeString, Value: append(append(b, s...), 0)}
}

// Date makes a date value, cut to milliseconds.
func Date(t time.Time) bson.RawValue { return DateMillis(t.UnixMilli()) }

// DateMillis makes a date value from milliseconds since 1970.
func DateMillis(ms int64) bson.RawValue {
	return bson.RawValue{Type: bson.TypeDateTime, Value: binary.LittleEndian.AppendUint64(nil, uint64(ms))}
}

// Timestamp makes a timestamp value.
func Timestamp(t bson.Timestamp) bson.RawValue {
	b := binary.LittleEndian.AppendUint32(nil, t.I)
	return bson.RawValue{Type: bson.TypeTimestamp, Value: binary.LittleEndian.AppendUint32(b, t.T)}
}

// ObjectID makes an object id value.
func ObjectID(id bson.ObjectID) bson.RawValue {
	return bson.RawValue{Type: bson.TypeObjectID, Value: id[:]}
}

// Document makes a value of a document.
func Document(doc bson.Raw) bson.RawValue {
	return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}
}

// Array makes an array value.
func Array(values []bson.RawValue) bson.RawValue {
	size := 5
	for _, v := range values {
		size += 8 + len(v.Value)
	}
	b := NewBuilder(make([]byte, 0, min(size, MaxBuilt)))
	for i, v := range values {
		b.AppendIndex(i, v)
	}
	return bson.RawValue{Type: bson.TypeArray, Value: b.Finish()}
}

// Values lists the elements of an array value.
func Values(array bson.RawValue) []bson.RawValue {
	var values []bson.RawValue
	for it := Iterate(array.Value); it.Next(); {
		values = append(values, it.value)
	}
	return values
}

// Builder writes one document, element by element.
type Builder struct {
	buf   []byte
	start int
}

// NewBuilder begins a document at the end of dst, which may be nil.
func NewBuilder(dst []byte) *Builder {
	return &Builder{buf: append(dst, 0, 0, 0, 0), start: len(dst)}
}

// MaxDocument is the largest document that a client may send or a collection
// hold, in bytes.
const MaxDocument = 16 << 20

// MaxBuilt is where a document stops to grow while it is built, so that what is
// asked for cannot take all memory. It is well above what a document may be:
// whoever takes one looks at its size, and never sees a part of one.
const MaxBuilt = 64 << 20

// Append writes an element. A missing value writes nothing.
func (b *Builder) Append(key string, v bson.RawValue) {
	if v.Type == Missing || len(b.buf)-b.start > MaxBuilt {
		return
	}
	b.buf = append(b.buf, byte(v.Type))
	b.buf = append(b.buf, key...)
	b.buf = append(b.buf, 0)
	b.buf = append(b.buf, v.Value...)
}

// AppendIndex writes an array's element. A missing value writes a null, so
// that the elements after it keep their places.
func (b *Builder) AppendIndex(i int, v bson.RawValue) {
	if v.Type == Missing {
		v.Type = bson.TypeNull
	}
	if len(b.buf)-b.start > MaxBuilt {
		return
	}
	b.buf = append(b.buf, byte(v.Type))
	b.buf = strconv.AppendInt(b.buf, int64(i), 10)
	b.buf = append(b.buf, 0)
	b.buf = append(b.buf, v.Value...)
}

// Finish ends the document and returns the bytes of NewBuilder's dst followed by
// it. The builder is done then.
func (b *Builder) Finish() []byte {
	b.buf = append(b.buf, 0)
	binary.LittleEndian.PutUint32(b.buf[b.start:], uint32(len(b.buf)-b.start))
	return b.buf
}

// Nest wraps a value in one document for each part of a path.
func Nest(path []string, v bson.RawValue) bson.RawValue {
	for _, part := range slices.Backward(path) {
		b := NewBuilder(nil)
		b.Append(part, v)
		v = Document(b.Finish())
	}
	return v
}

// Empty is the document without fields.
var Empty = bson.Raw{5, 0, 0, 0, 0}

// CloseDocument ends the document or array that was begun at a place in dst.
func CloseDocument(dst []byte, at int32) []byte {
	dst, err := bsoncore.AppendDocumentEnd(dst, at)
	if err != nil {
		panic(err) // only when the place is not in dst
	}
	return dst
}

// ArrayKey is the name of an array's element.
func ArrayKey(i int) string { return strconv.Itoa(i) }
