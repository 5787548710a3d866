package amqp

import (
	"bytes"
	"fmt"
	"math"
	"time"
)

// Value reads a value of any type. It shares no memory with the input.
func (r *Reader) Value() any {
	if r.depth >= maxDepth {
		r.fail(errDepth)
		return nil
	}
	r.depth++
	defer func() { r.depth-- }()
	code := r.byte()
	if code == codeDescribed {
		descriptor := r.Value()
		if r.err != nil {
			return nil
		}
		return Described{Descriptor: descriptor, Value: r.Value()}
	}
	return r.primitive(code)
}

// primitive reads what follows the constructor code.
func (r *Reader) primitive(code byte) any {
	switch code {
	case codeString8:
		return string(r.take(int(r.byte())))
	case codeString32:
		return string(r.take(int(r.uint32())))
	case codeSymbol8:
		return Symbol(r.take(int(r.byte())))
	case codeSymbol32:
		return Symbol(r.take(int(r.uint32())))
	case codeBinary8:
		return bytes.Clone(r.take(int(r.byte())))
	case codeBinary32:
		return bytes.Clone(r.take(int(r.uint32())))
	case codeList0:
		return []any{}
	case codeList8, codeList32:
		return r.listItems(code)
	case codeMap8, codeMap32:
		return r.mapEntries(code)
	case codeArray8, codeArray32:
		return r.array(code)
	}
	return r.fixed(code)
}

// fixed reads the types of constant width (sections 1.6.1 to 1.6.18).
func (r *Reader) fixed(code byte) any {
	switch code {
	case codeNull:
		return nil
	case codeTrue:
		return true
	case codeFalse:
		return false
	case codeBool:
		return r.byte() != 0
	case codeUbyte:
		return r.byte()
	case codeUshort:
		return r.uint16()
	case codeUint0:
		return uint32(0)
	case codeSmallUint:
		return uint32(r.byte())
	case codeUint:
		return r.uint32()
	case codeUlong0:
		return uint64(0)
	case codeSmallUlong:
		return uint64(r.byte())
	case codeUlong:
		return r.uint64()
	}
	return r.signed(code)
}

func (r *Reader) signed(code byte) any {
	switch code {
	case codeByte:
		return int8(r.byte())
	case codeShort:
		return int16(r.uint16())
	case codeSmallInt:
		return int32(int8(r.byte()))
	case codeInt:
		return int32(r.uint32())
	case codeSmallLong:
		return int64(int8(r.byte()))
	case codeLong:
		return int64(r.uint64())
	case codeFloat:
		return math.Float32frombits(r.uint32())
	case codeDouble:
		return math.Float64frombits(r.uint64())
	case codeTimestamp:
		return time.UnixMilli(int64(r.uint64())).UTC()
	case codeChar:
		return Char(r.uint32())
	case codeUUID:
		var u UUID
		copy(u[:], r.take(16))
		return u
	case codeDecimal32:
		return Decimal(bytes.Clone(r.take(4)))
	case codeDecimal64:
		return Decimal(bytes.Clone(r.take(8)))
	case codeDecimal128:
		return Decimal(bytes.Clone(r.take(16)))
	}
	r.fail(errConstructor(code))
	return nil
}

func (r *Reader) listItems(code byte) []any {
	n, end := r.compound(code)
	items := make([]any, 0, min(n, maxPrealloc))
	for range n {
		if r.err != nil {
			return nil
		}
		items = append(items, r.Value())
	}
	r.expectEnd(end)
	return items
}

// Map reads a map.
func (r *Reader) Map() Map {
	switch code := r.byte(); code {
	case codeMap8, codeMap32:
		return r.mapEntries(code)
	default:
		r.unexpected("map", code)
		return nil
	}
}

func (r *Reader) mapEntries(code byte) Map {
	n, end := r.compound(code)
	if n%2 != 0 {
		r.fail(errCount)
		return nil
	}
	m := make(Map, 0, min(n/2, maxPrealloc))
	for range n / 2 {
		if r.err != nil {
			return nil
		}
		key := r.Value()
		if r.err != nil {
			return nil
		}
		m = append(m, Pair{Key: key, Value: r.Value()})
	}
	r.expectEnd(end)
	return m
}

// array reads the constructor that all elements share, then the elements (section 1.6.24).
func (r *Reader) array(code byte) Array {
	if r.depth >= maxDepth {
		r.fail(errDepth)
		return Array{}
	}
	r.depth++
	defer func() { r.depth-- }()
	n, end := r.compound(code)
	if n > end-r.pos {
		if r.widthless += n; r.widthless > maxWidthless {
			r.fail(errCount)
			return Array{}
		}
	}
	var a Array
	code = r.byte()
	if code == codeDescribed {
		a.Descriptor = r.Value()
		code = r.byte()
	}
	if code < leastConstructor {
		r.fail(errConstructor(code)) // also of an array without elements
	}
	if r.err != nil {
		return Array{}
	}
	a.Code = wideCode(code)
	a.Items = make([]any, 0, min(n, maxPrealloc))
	for range n {
		a.Items = append(a.Items, r.primitive(code))
		if r.err != nil {
			return Array{}
		}
	}
	r.expectEnd(end)
	return a
}

func (r *Reader) expectEnd(end int) {
	if r.err == nil && r.pos != end {
		r.fail(errCount)
	}
}

// Skip passes over one value without building it.
func (r *Reader) Skip() {
	if r.depth >= maxDepth {
		r.fail(errDepth)
		return
	}
	r.depth++
	defer func() { r.depth-- }()
	code := r.byte()
	if code == codeDescribed {
		if r.Skip(); r.err == nil {
			r.Skip()
		}
		return
	}
	switch code & 0xf0 {
	case 0x40:
	case 0x50:
		r.take(1)
	case 0x60:
		r.take(2)
	case 0x70:
		r.take(4)
	case 0x80:
		r.take(8)
	case 0x90:
		r.take(16)
	case 0xa0, 0xc0, 0xe0:
		r.take(int(r.byte()))
	case 0xb0, 0xd0, 0xf0:
		r.take(int(r.uint32()))
	default:
		r.fail(errConstructor(code))
	}
}

// leastConstructor is the first code that says how wide a value is (section
// 1.3); below it there is only the one of described values.
const leastConstructor = 0x40

func errConstructor(code byte) error { return fmt.Errorf("unknown constructor 0x%02x", code) }
