package projection

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// plainJSON reads one JSON value as the driver reads it, several times as fast,
// where it is plain: text without escapes, whole numbers, those of 64 bits in
// their canonical form, and no other key that begins with $. Of anything else,
// bad JSON too, it says false, and the driver decides.
func plainJSON(data []byte) (bson.RawValue, bool) {
	p := plain{in: data, out: make([]byte, 0, len(data)+len(data)/4+16)}
	kind, ok := p.value(maxPlainDepth)
	p.space()
	if !ok || len(p.in) > 0 {
		return bson.RawValue{}, false
	}
	return bson.RawValue{Type: kind, Value: p.out}, true
}

// maxPlainDepth bounds the recursion.
const maxPlainDepth = 64

// plain is a reader of plain JSON that writes BSON (bsonspec.org, version 1.1).
type plain struct {
	in  []byte // what is left to read
	out []byte
}

// value reads one value and writes it without its type.
func (p *plain) value(depth int) (kind bson.Type, ok bool) {
	p.space()
	switch c := p.next(); {
	case p.word(`{"$numberLong":"`):
		return bson.TypeInt64, p.long()
	case c == '{' || c == '[':
		return p.container(c, depth)
	case c == '"':
		text, ok := p.text()
		p.out = binary.LittleEndian.AppendUint32(p.out, uint32(len(text)+1))
		p.out = append(append(p.out, text...), 0)
		return bson.TypeString, ok
	case p.word("true"):
		p.out = append(p.out, 1)
		return bson.TypeBoolean, true
	case p.word("false"):
		p.out = append(p.out, 0)
		return bson.TypeBoolean, true
	case p.word("null"):
		return bson.TypeNull, true
	}
	return p.number()
}

// container reads an object or an array.
func (p *plain) container(open byte, depth int) (kind bson.Type, ok bool) {
	kind, end := bson.TypeEmbeddedDocument, byte('}')
	if open == '[' {
		kind, end = bson.TypeArray, ']'
	}
	if depth == 0 {
		return kind, false
	}
	start := len(p.out)
	p.out = append(p.out, 0, 0, 0, 0) // the length
	p.in = p.in[1:]
	p.space()
	for n := 0; p.next() != end; n++ {
		if n > 0 && !p.skip(',') || !p.element(kind, n, depth) {
			return kind, false
		}
		p.space()
	}
	p.in = p.in[1:]
	p.out = append(p.out, 0)
	binary.LittleEndian.PutUint32(p.out[start:], uint32(len(p.out)-start))
	return kind, true
}

// element reads the nth element of a container.
func (p *plain) element(container bson.Type, n, depth int) bool {
	at := len(p.out)
	p.out = append(p.out, 0) // the type
	if container == bson.TypeArray {
		p.out = strconv.AppendInt(p.out, int64(n), 10)
	} else {
		p.space()
		key, ok := p.text()
		if !ok || len(key) == 0 || key[0] == '$' {
			return false
		}
		p.out = append(p.out, key...)
		p.space()
		if !p.skip(':') {
			return false
		}
	}
	p.out = append(p.out, 0)
	kind, ok := p.value(depth - 1)
	p.out[at] = byte(kind)
	return ok
}

// text reads text without escapes.
func (p *plain) text() (text []byte, ok bool) {
	if !p.skip('"') {
		return nil, false
	}
	end := bytes.IndexByte(p.in, '"')
	if end < 0 {
		return nil, false
	}
	text, p.in = p.in[:end], p.in[end+1:]
	for _, c := range text {
		if c < ' ' || c == '\\' {
			return nil, false
		}
	}
	return text, utf8.Valid(text)
}

// long reads what is left of {"$numberLong":"5"} behind its second quote.
func (p *plain) long() bool {
	n, ok := p.digits()
	p.out = binary.LittleEndian.AppendUint64(p.out, uint64(n))
	return ok && p.word(`"}`)
}

// number reads a whole number.
func (p *plain) number() (kind bson.Type, ok bool) {
	n, ok := p.digits()
	if !ok {
		return 0, false
	}
	switch p.next() {
	case '.', 'e', 'E':
		return 0, false
	}
	if n < math.MinInt32 || n > math.MaxInt32 {
		p.out = binary.LittleEndian.AppendUint64(p.out, uint64(n))
		return bson.TypeInt64, true
	}
	p.out = binary.LittleEndian.AppendUint32(p.out, uint32(n))
	return bson.TypeInt32, true
}

// digits reads the digits of a whole number. A longer one, and a negative zero,
// are the driver's.
func (p *plain) digits() (n int64, ok bool) {
	const longest = 18 // digits that surely fit in 64 bits
	digits := p.in
	negative := p.next() == '-'
	if negative {
		digits = digits[1:]
	}
	i := 0
	for ; i < len(digits) && i <= longest && '0' <= digits[i] && digits[i] <= '9'; i++ {
		n = 10*n + int64(digits[i]-'0')
	}
	if i == 0 || i > longest || digits[0] == '0' && (i > 1 || negative) {
		return 0, false
	}
	p.in = digits[i:]
	if negative {
		n = -n
	}
	return n, true
}

// next is the next byte, or 0.
func (p *plain) next() byte {
	if len(p.in) == 0 {
		return 0
	}
	return p.in[0]
}

func (p *plain) skip(c byte) bool {
	if p.next() != c {
		return false
	}
	p.in = p.in[1:]
	return true
}

func (p *plain) word(w string) bool {
	if len(p.in) < len(w) || string(p.in[:len(w)]) != w {
		return false
	}
	p.in = p.in[len(w):]
	return true
}

func (p *plain) space() {
	for len(p.in) > 0 && (p.in[0] == ' ' || p.in[0] == '\n' || p.in[0] == '\r' || p.in[0] == '\t') {
		p.in = p.in[1:]
	}
}
