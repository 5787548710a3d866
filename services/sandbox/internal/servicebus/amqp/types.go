package amqp

// Constructors of the primitive types (part 1, section 1.6).
const (
	codeDescribed  = 0x00
	codeNull       = 0x40
	codeTrue       = 0x41
	codeFalse      = 0x42
	codeUint0      = 0x43
	codeUlong0     = 0x44
	codeList0      = 0x45
	codeUbyte      = 0x50
	codeByte       = 0x51
	codeSmallUint  = 0x52
	codeSmallUlong = 0x53
	codeSmallInt   = 0x54
	codeSmallLong  = 0x55
	codeBool       = 0x56
	codeUshort     = 0x60
	codeShort      = 0x61
	codeUint       = 0x70
	codeInt        = 0x71
	codeFloat      = 0x72
	codeChar       = 0x73
	codeDecimal32  = 0x74
	codeUlong      = 0x80
	codeLong       = 0x81
	codeDouble     = 0x82
	codeTimestamp  = 0x83
	codeDecimal64  = 0x84
	codeDecimal128 = 0x94
	codeUUID       = 0x98
	codeBinary8    = 0xa0
	codeString8    = 0xa1
	codeSymbol8    = 0xa3
	codeBinary32   = 0xb0
	codeString32   = 0xb1
	codeSymbol32   = 0xb3
	codeList8      = 0xc0
	codeMap8       = 0xc1
	codeList32     = 0xd0
	codeMap32      = 0xd1
	codeArray8     = 0xe0
	codeArray32    = 0xf0
)

// Symbol is a symbolic value from a constrained domain (section 1.6.21).
type Symbol string

// UUID is a universally unique identifier in the byte order of RFC 4122 (section 1.6.18).
type UUID [16]byte

// Char is a single Unicode character (section 1.6.16).
type Char rune

// Decimal is an IEEE 754 decimal of 4, 8 or 16 bytes, kept as it came (sections 1.6.13 to 1.6.15).
type Decimal []byte

// Described is a value with a descriptor that the reader does not interpret (section 1.2).
type Described struct {
	Descriptor any
	Value      any
}

// Array is a sequence of values of one type (section 1.6.24).
type Array struct {
	// Code is the widest constructor for the elements' type; for described elements, of the values inside.
	Code byte
	// Descriptor is set when the elements are described.
	Descriptor any
	Items      []any
}

// Pair is one entry of a [Map].
type Pair struct {
	Key, Value any
}

// Map keeps its entries in the order of the wire (section 1.6.23 makes the order significant for equality).
type Map []Pair

// Get returns the value under a string or symbol key, or nil.
func (m Map) Get(key string) any {
	for _, p := range m {
		switch k := p.Key.(type) {
		case string:
			if k == key {
				return p.Value
			}
		case Symbol:
			if string(k) == key {
				return p.Value
			}
		}
	}
	return nil
}

// String returns the string or symbol under key, or "" when there is none.
func (m Map) String(key string) string {
	s, _ := AsString(m.Get(key))
	return s
}

// AsString returns v as a string when it is a string or a symbol.
func AsString(v any) (string, bool) {
	switch s := v.(type) {
	case string:
		return s, true
	case Symbol:
		return string(s), true
	}
	return "", false
}

// AsInt returns v as an int64 when it is one of the integer types and fits.
func AsInt(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case int32:
		return int64(n), true
	case int16:
		return int64(n), true
	case int8:
		return int64(n), true
	case uint64:
		return int64(n), n <= 1<<63-1
	case uint32:
		return int64(n), true
	case uint16:
		return int64(n), true
	case uint8:
		return int64(n), true
	}
	return 0, false
}

// Optional is an unsigned field that may be absent, without a pointer: transfers and flows are too frequent for one.
type Optional struct {
	Value uint32
	Set   bool
}

// Some returns an Optional that is present.
func Some(v uint32) Optional { return Optional{Value: v, Set: true} }
