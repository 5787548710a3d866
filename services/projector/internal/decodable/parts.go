package decodable

import "encoding/binary"

// parts are values, one after another.
type parts []byte

// part is one of them; without a code where there is none. The content of a described value
// is its descriptor and the value.
type part struct {
	code    byte
	content []byte
}

// list is the values of a list (AMQP 1.0, section 1.6.22).
func list(b []byte) parts {
	if len(b) == 0 || constructors[b[0]].form != ofList {
		return nil
	}
	return compound(constructors[b[0]].width, b[1:])
}

// compound is the values of a list or a map, behind its constructor.
func compound(width uint8, b []byte) parts {
	return b[min(2*int(width), len(b)):]
}

// next takes the next part. Where it is of no known type there is none from then on.
func (p *parts) next() part {
	if len(*p) == 0 {
		return part{code: nullCode}
	}
	b := *p
	n := extent(b)
	if b[0] == 0 {
		n = 1
		for range 2 {
			if n < len(b) {
				n += extent(b[n:])
			}
		}
	}
	if n > len(b) {
		*p = nil
		return part{code: nullCode}
	}
	*p = b[n:]
	c := constructors[b[0]]
	if c.form == variable {
		return part{b[0], b[1+c.width : n]}
	}
	return part{b[0], b[1:n]}
}

// extent is how many bytes a value has, by its beginning. One that is described counts as
// longer than all there is, since a performative has none within another.
func extent(b []byte) int {
	c := constructors[b[0]]
	switch {
	case c.form == fixed:
		return 1 + int(c.width)
	case c.form == unknown, c.form == described, len(b) < 1+int(c.width):
		return len(b) + 1
	case c.width == 1:
		return 2 + int(b[1])
	}
	return 5 + int(binary.BigEndian.Uint32(b[1:]))
}

// values are the keys and values of a map, or the values of a list.
func (p part) values() parts {
	if c := constructors[p.code]; c.form == ofMap || c.form == ofList {
		return compound(c.width, p.content)
	}
	return nil
}

func (p part) uint() uint32 {
	switch p.code {
	case smallUintCode:
		return uint32(p.content[0])
	case uintCode:
		return binary.BigEndian.Uint32(p.content)
	}
	return 0
}

func (p part) bool() bool {
	return p.code == trueCode || p.code == boolCode && p.content[0] != 0
}
