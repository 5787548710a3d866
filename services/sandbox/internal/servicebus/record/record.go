// Package record writes and reads the fields of a journal's records: integers as
// varints, strings with their length, times as nanoseconds of Unix time.
package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/google/uuid"
)

// Encoder writes fields, each behind the last.
type Encoder struct{ Buf []byte }

// Uint writes a number.
func (w *Encoder) Uint(v uint64) { w.Buf = binary.AppendUvarint(w.Buf, v) }

// Int writes a number that may be negative.
func (w *Encoder) Int(v int64) { w.Buf = binary.AppendVarint(w.Buf, v) }

// Text writes a string with its length.
func (w *Encoder) Text(s string) { w.Uint(uint64(len(s))); w.Buf = append(w.Buf, s...) }

// Bytes writes bytes with their length.
func (w *Encoder) Bytes(p []byte) { w.Uint(uint64(len(p))); w.Buf = append(w.Buf, p...) }

// Raw writes bytes as they are.
func (w *Encoder) Raw(p []byte) { w.Buf = append(w.Buf, p...) }

// Bool writes a truth.
func (w *Encoder) Bool(v bool) { w.Uint(uint64(map[bool]int{true: 1}[v])) }

// Optional writes a string that may be absent.
func (w *Encoder) Optional(s *string) { w.Bool(s != nil); w.Text(deref(s)) }

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// Time keeps the instant; a zero time stays zero.
func (w *Encoder) Time(t time.Time) {
	w.Bool(!t.IsZero())
	if !t.IsZero() {
		w.Int(t.Unix())
		w.Uint(uint64(t.Nanosecond()))
	}
}

// Properties writes a map of them.
func (w *Encoder) Properties(m map[string]any) {
	w.Uint(uint64(len(m)))
	for k, v := range m {
		w.Text(k)
		w.Value(v)
	}
}

// Tags of property values.
const (
	tagNil byte = iota
	tagBool
	tagInt8
	tagInt16
	tagInt32
	tagInt64
	tagUint8
	tagUint16
	tagUint32
	tagUint64
	tagFloat32
	tagFloat64
	tagString
	tagBytes
	tagTime
	tagUUID
	// tagLong is a long of a rule that would fit into an int.
	tagLong
)

// Value writes a property. A named type is written as what it is made of; what
// is no property at all is written as text.
func (w *Encoder) Value(v any) {
	switch v := v.(type) {
	case nil:
		w.Raw([]byte{tagNil})
		return
	case time.Time:
		w.Raw([]byte{tagTime})
		w.Time(v)
		return
	case uuid.UUID:
		w.Raw([]byte{tagUUID})
		w.Raw(v[:])
		return
	case []byte:
		w.Raw([]byte{tagBytes})
		w.Bytes(v)
		return
	}
	w.scalar(reflect.ValueOf(v))
}

var (
	signedTags   = map[reflect.Kind]byte{reflect.Int8: tagInt8, reflect.Int16: tagInt16, reflect.Int32: tagInt32, reflect.Int64: tagInt64, reflect.Int: tagInt64}
	unsignedTags = map[reflect.Kind]byte{reflect.Uint8: tagUint8, reflect.Uint16: tagUint16, reflect.Uint32: tagUint32, reflect.Uint64: tagUint64, reflect.Uint: tagUint64}
)

func (w *Encoder) scalar(v reflect.Value) {
	switch {
	case v.Kind() == reflect.Bool:
		w.Raw([]byte{tagBool})
		w.Bool(v.Bool())
	case v.CanInt():
		w.Raw([]byte{signedTags[v.Kind()]})
		w.Int(v.Int())
	case v.CanUint():
		w.Raw([]byte{unsignedTags[v.Kind()]})
		w.Uint(v.Uint())
	case v.Kind() == reflect.Float32:
		w.Raw([]byte{tagFloat32})
		w.Uint(math.Float64bits(v.Float()))
	case v.Kind() == reflect.Float64:
		w.Raw([]byte{tagFloat64})
		w.Uint(math.Float64bits(v.Float()))
	case v.Kind() == reflect.String:
		w.Raw([]byte{tagString})
		w.Text(v.String())
	default:
		w.Raw([]byte{tagString})
		w.Text(fmt.Sprint(v))
	}
}

// ErrRecord is a record that was not written by this package, or by a newer one.
var ErrRecord = errors.New("record is not understood")

// Decoder reads fields. Its first error sticks, and every read after it returns
// zero.
type Decoder struct {
	Buf []byte
	Err error
}

// Fail says that the record is not understood.
func (r *Decoder) Fail() {
	r.Err = ErrRecord
	r.Buf = nil
}

// Uint reads a number.
func (r *Decoder) Uint() uint64 {
	v, n := binary.Uvarint(r.Buf)
	if n <= 0 {
		r.Fail()
		return 0
	}
	r.Buf = r.Buf[n:]
	return v
}

// Int reads a number that may be negative.
func (r *Decoder) Int() int64 {
	v, n := binary.Varint(r.Buf)
	if n <= 0 {
		r.Fail()
		return 0
	}
	r.Buf = r.Buf[n:]
	return v
}

// Raw reads so many bytes. They are part of the record.
func (r *Decoder) Raw(n uint64) []byte {
	if n > uint64(len(r.Buf)) {
		r.Fail()
		return nil
	}
	p := r.Buf[:n]
	r.Buf = r.Buf[n:]
	return p
}

// Bytes reads bytes with their length. It returns a copy.
func (r *Decoder) Bytes() []byte { return append([]byte{}, r.Raw(r.Uint())...) }

// Text reads a string with its length.
func (r *Decoder) Text() string { return string(r.Raw(r.Uint())) }

// Bool reads a truth.
func (r *Decoder) Bool() bool { return r.Uint() != 0 }

// Byte reads one byte.
func (r *Decoder) Byte() byte {
	p := r.Raw(1)
	if len(p) == 0 {
		return 0
	}
	return p[0]
}

// Optional reads a string that may be absent.
func (r *Decoder) Optional() *string {
	set, s := r.Bool(), r.Text()
	if !set {
		return nil
	}
	return &s
}

// Time reads an instant.
func (r *Decoder) Time() time.Time {
	if !r.Bool() {
		return time.Time{}
	}
	seconds, nanoseconds := r.Int(), r.Uint()
	return time.Unix(seconds, int64(nanoseconds%1e9)).UTC()
}

// Properties reads a map of them.
func (r *Decoder) Properties() map[string]any {
	n := r.Uint()
	if n == 0 || r.Err != nil {
		return nil
	}
	m := map[string]any{}
	for range n {
		if r.Err != nil {
			return nil
		}
		k := r.Text()
		m[k] = r.Value()
	}
	return m
}

// Value reads a property.
func (r *Decoder) Value() any {
	switch r.Byte() {
	case tagNil:
		return nil
	case tagBool:
		return r.Bool()
	case tagInt8:
		return int8(r.Int())
	case tagInt16:
		return int16(r.Int())
	case tagInt32:
		return int32(r.Int())
	case tagInt64:
		return r.Int()
	case tagUint8:
		return uint8(r.Uint())
	case tagUint16:
		return uint16(r.Uint())
	case tagUint32:
		return uint32(r.Uint())
	case tagUint64:
		return r.Uint()
	case tagFloat32:
		return float32(math.Float64frombits(r.Uint()))
	case tagFloat64:
		return math.Float64frombits(r.Uint())
	case tagString:
		return r.Text()
	case tagBytes:
		return r.Bytes()
	case tagTime:
		return r.Time()
	case tagUUID:
		var u uuid.UUID
		copy(u[:], r.Raw(16))
		return u
	}
	r.Fail()
	return nil
}
