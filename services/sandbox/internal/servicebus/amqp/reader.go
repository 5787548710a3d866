package amqp

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var (
	errShort = errors.New("input ends within a value")
	errDepth = errors.New("values are nested too deeply")
	errCount = errors.New("element count does not fit the size")
)

const (
	// maxDepth is far above what the standard's own types and the service's conventions need.
	maxDepth = 32
	// maxWidthless limits the elements without bytes in all arrays of one input, so that counts alone cannot allocate.
	maxWidthless = 1024
	// maxPrealloc is what a count may reserve before its elements have been seen.
	maxPrealloc = 16
)

// Reader decodes values from a byte slice. After the first error every method returns zero values and [Reader.Err]
// reports the error. Only what [Reader.Binary] returns is a part of the input; everything else is copied.
type Reader struct {
	buf   []byte
	pos   int
	depth int
	// widthless counts the elements without bytes read from arrays.
	widthless int
	err       error
}

// NewReader reads from b, which must not change while the reader is in use.
func NewReader(b []byte) *Reader { return &Reader{buf: b} }

// Err returns the first error.
func (r *Reader) Err() error { return r.err }

// Len returns the number of unread bytes.
func (r *Reader) Len() int { return len(r.buf) - r.pos }

// Pos returns the offset of the next unread byte.
func (r *Reader) Pos() int { return r.pos }

func (r *Reader) fail(err error) {
	if r.err == nil {
		r.err = fmt.Errorf("offset %d: %w", r.pos, err)
		r.pos = len(r.buf)
	}
}

func (r *Reader) take(n int) []byte {
	if n < 0 || n > r.Len() {
		r.fail(errShort)
		return nil
	}
	b := r.buf[r.pos : r.pos+n : r.pos+n]
	r.pos += n
	return b
}

func (r *Reader) byte() byte {
	if r.pos >= len(r.buf) {
		r.fail(errShort)
		return 0
	}
	b := r.buf[r.pos]
	r.pos++
	return b
}

func (r *Reader) uint16() uint16 {
	if b := r.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (r *Reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *Reader) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (r *Reader) unexpected(want string, code byte) {
	r.fail(fmt.Errorf("got constructor 0x%02x, want %s", code, want))
}

// Uint reads an unsigned 32-bit integer.
func (r *Reader) Uint() uint32 {
	switch code := r.byte(); code {
	case codeUint0:
		return 0
	case codeSmallUint:
		return uint32(r.byte())
	case codeUint:
		return r.uint32()
	default:
		r.unexpected("uint", code)
		return 0
	}
}

// Ulong reads an unsigned 64-bit integer.
func (r *Reader) Ulong() uint64 {
	switch code := r.byte(); code {
	case codeUlong0:
		return 0
	case codeSmallUlong:
		return uint64(r.byte())
	case codeUlong:
		return r.uint64()
	default:
		r.unexpected("ulong", code)
		return 0
	}
}

// Ushort reads an unsigned 16-bit integer.
func (r *Reader) Ushort() uint16 {
	if code := r.byte(); code != codeUshort {
		r.unexpected("ushort", code)
		return 0
	}
	return r.uint16()
}

// Ubyte reads an unsigned byte.
func (r *Reader) Ubyte() uint8 {
	if code := r.byte(); code != codeUbyte {
		r.unexpected("ubyte", code)
		return 0
	}
	return r.byte()
}

// Bool reads a boolean.
func (r *Reader) Bool() bool {
	switch code := r.byte(); code {
	case codeTrue:
		return true
	case codeFalse:
		return false
	case codeBool:
		return r.byte() != 0
	default:
		r.unexpected("boolean", code)
		return false
	}
}

// Binary reads octets as a sub-slice of the input.
func (r *Reader) Binary() []byte {
	switch code := r.byte(); code {
	case codeBinary8:
		return r.take(int(r.byte()))
	case codeBinary32:
		return r.take(int(r.uint32()))
	default:
		r.unexpected("binary", code)
		return nil
	}
}

// Text reads a string or a symbol: peers mix them up, and nothing here tells them apart.
func (r *Reader) Text() string {
	switch code := r.byte(); code {
	case codeString8, codeSymbol8:
		return string(r.take(int(r.byte())))
	case codeString32, codeSymbol32:
		return string(r.take(int(r.uint32())))
	default:
		r.unexpected("string or symbol", code)
		return ""
	}
}

// descriptor reads the constructor byte of a described type and its descriptor, numeric or by name (section 1.2).
func (r *Reader) descriptor() uint64 {
	if code := r.byte(); code != codeDescribed {
		r.unexpected("described type", code)
		return 0
	}
	if r.pos < len(r.buf) && (r.buf[r.pos] == codeSymbol8 || r.buf[r.pos] == codeSymbol32) {
		name := r.Text()
		code, ok := descriptorNames[name]
		if !ok && r.err == nil {
			r.fail(fmt.Errorf("unknown descriptor %q", name))
		}
		return code
	}
	return r.Ulong()
}

// compound reads the size and count of a list, map or array and returns the count and the offset behind it.
func (r *Reader) compound(code byte) (count, end int) {
	var size, n int
	if code&0x10 == 0 {
		size, n = int(r.byte())-1, int(r.byte())
	} else {
		size, n = int(r.uint32())-4, int(r.uint32())
	}
	if r.err != nil {
		return 0, r.pos
	}
	if size < 0 || size > r.Len() {
		r.fail(errShort)
		return 0, r.pos
	}
	return n, r.pos + size
}
