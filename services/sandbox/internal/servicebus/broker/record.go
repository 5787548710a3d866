package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/google/uuid"
)

// A journal record is a sequence of operations that are durable together. An
// operation is its code and its fields: integers as varints, strings with their
// length, times as nanoseconds of Unix time.
type operation byte

const (
	opQueue        operation = iota + 1 // made or changed
	opTopic                             // made or changed
	opSubscription                      // made or changed, with its rules
	opDropInlet
	opDropSubscription
	opContent  // of messages that later operations put
	opPut      // a message into a store
	opRemove   // a message from a store
	opChange   // a message's state, count and marks
	opState    // of a session
	opRemember // an id in a history
	opNumbers  // of a store, in a snapshot
)

// encoder writes operations.
type encoder struct{ buf []byte }

func (w *encoder) begin(op operation) { w.buf = append(w.buf, byte(op)) }
func (w *encoder) uint(v uint64)      { w.buf = binary.AppendUvarint(w.buf, v) }
func (w *encoder) int(v int64)        { w.buf = binary.AppendVarint(w.buf, v) }
func (w *encoder) string(s string)    { w.uint(uint64(len(s))); w.buf = append(w.buf, s...) }
func (w *encoder) bytes(p []byte)     { w.uint(uint64(len(p))); w.buf = append(w.buf, p...) }
func (w *encoder) raw(p []byte)       { w.buf = append(w.buf, p...) }
func (w *encoder) bool(v bool)        { w.uint(uint64(map[bool]int{true: 1}[v])) }
func (w *encoder) optional(s *string) { w.bool(s != nil); w.string(deref(s)) }

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// time keeps the instant; a zero time stays zero.
func (w *encoder) time(t time.Time) {
	w.bool(!t.IsZero())
	if !t.IsZero() {
		w.int(t.Unix())
		w.uint(uint64(t.Nanosecond()))
	}
}

func (w *encoder) properties(m map[string]any) {
	w.uint(uint64(len(m)))
	for k, v := range m {
		w.string(k)
		w.value(v)
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
)

// value writes a property. A named type is written as what it is made of; what
// is no property at all is written as text.
func (w *encoder) value(v any) {
	switch v := v.(type) {
	case nil:
		w.raw([]byte{tagNil})
		return
	case time.Time:
		w.raw([]byte{tagTime})
		w.time(v)
		return
	case uuid.UUID:
		w.raw([]byte{tagUUID})
		w.raw(v[:])
		return
	case []byte:
		w.raw([]byte{tagBytes})
		w.bytes(v)
		return
	}
	w.scalar(reflect.ValueOf(v))
}

var (
	signedTags   = map[reflect.Kind]byte{reflect.Int8: tagInt8, reflect.Int16: tagInt16, reflect.Int32: tagInt32, reflect.Int64: tagInt64, reflect.Int: tagInt64}
	unsignedTags = map[reflect.Kind]byte{reflect.Uint8: tagUint8, reflect.Uint16: tagUint16, reflect.Uint32: tagUint32, reflect.Uint64: tagUint64, reflect.Uint: tagUint64}
)

func (w *encoder) scalar(v reflect.Value) {
	switch {
	case v.Kind() == reflect.Bool:
		w.raw([]byte{tagBool})
		w.bool(v.Bool())
	case v.CanInt():
		w.raw([]byte{signedTags[v.Kind()]})
		w.int(v.Int())
	case v.CanUint():
		w.raw([]byte{unsignedTags[v.Kind()]})
		w.uint(v.Uint())
	case v.Kind() == reflect.Float32:
		w.raw([]byte{tagFloat32})
		w.uint(math.Float64bits(v.Float()))
	case v.Kind() == reflect.Float64:
		w.raw([]byte{tagFloat64})
		w.uint(math.Float64bits(v.Float()))
	case v.Kind() == reflect.String:
		w.raw([]byte{tagString})
		w.string(v.String())
	default:
		w.raw([]byte{tagString})
		w.string(fmt.Sprint(v))
	}
}

// errRecord is a record that was not written by this package, or by a newer one.
var errRecord = errors.New("record is not understood")

// decoder reads operations. Its first error sticks, and every read after it
// returns zero.
type decoder struct {
	buf []byte
	err error
}

func (r *decoder) fail() {
	r.err = errRecord
	r.buf = nil
}

func (r *decoder) uint() uint64 {
	v, n := binary.Uvarint(r.buf)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.buf = r.buf[n:]
	return v
}

func (r *decoder) int() int64 {
	v, n := binary.Varint(r.buf)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.buf = r.buf[n:]
	return v
}

func (r *decoder) raw(n uint64) []byte {
	if n > uint64(len(r.buf)) {
		r.fail()
		return nil
	}
	p := r.buf[:n]
	r.buf = r.buf[n:]
	return p
}

// bytes returns a copy.
func (r *decoder) bytes() []byte  { return append([]byte{}, r.raw(r.uint())...) }
func (r *decoder) string() string { return string(r.raw(r.uint())) }
func (r *decoder) bool() bool     { return r.uint() != 0 }

func (r *decoder) byte() byte {
	p := r.raw(1)
	if len(p) == 0 {
		return 0
	}
	return p[0]
}

func (r *decoder) optional() *string {
	set, s := r.bool(), r.string()
	if !set {
		return nil
	}
	return &s
}

func (r *decoder) time() time.Time {
	if !r.bool() {
		return time.Time{}
	}
	seconds, nanoseconds := r.int(), r.uint()
	return time.Unix(seconds, int64(nanoseconds%1e9)).UTC()
}

func (r *decoder) properties() map[string]any {
	n := r.uint()
	if n == 0 || r.err != nil {
		return nil
	}
	m := map[string]any{}
	for range n {
		if r.err != nil {
			return nil
		}
		k := r.string()
		m[k] = r.value()
	}
	return m
}

func (r *decoder) value() any {
	switch r.byte() {
	case tagNil:
		return nil
	case tagBool:
		return r.bool()
	case tagInt8:
		return int8(r.int())
	case tagInt16:
		return int16(r.int())
	case tagInt32:
		return int32(r.int())
	case tagInt64:
		return r.int()
	case tagUint8:
		return uint8(r.uint())
	case tagUint16:
		return uint16(r.uint())
	case tagUint32:
		return uint32(r.uint())
	case tagUint64:
		return r.uint()
	case tagFloat32:
		return float32(math.Float64frombits(r.uint()))
	case tagFloat64:
		return math.Float64frombits(r.uint())
	case tagString:
		return r.string()
	case tagBytes:
		return r.bytes()
	case tagTime:
		return r.time()
	case tagUUID:
		var u uuid.UUID
		copy(u[:], r.raw(16))
		return u
	}
	r.fail()
	return nil
}
