package decodable

// class is what a constructor may stand for where go-amqp decodes a value: several at once.
type class uint16

const (
	null class = 1 << iota
	boolean
	ubyte
	uint32s
	unsigned // of any width
	binaries
	text
	timestamp
	listed
	mapped
	hashable // a key of a map, or a part of one
	all      // go-amqp's ReadAny
)

// form is how what follows a constructor is laid out (AMQP 1.0, section 1.2).
type form uint8

const (
	unknown   form = iota // by go-amqp, that is: it has neither decimals nor chars
	fixed                 // of width bytes
	variable              // a length of width bytes, and so many bytes
	ofList                // a size and a count of width bytes each, and so many values
	ofMap                 // the same
	ofArray               // the same with one constructor, and no constructor for each value
	described             // two values: the descriptor and what it describes
)

type constructor struct {
	form  form
	width uint8
	is    class
}

// constructors are those that go-amqp knows (AMQP 1.0, section 1.6).
var constructors = [256]constructor{
	0x00: {described, 0, hashable | all},
	0x40: {fixed, 0, null | hashable | all},
	0x41: {fixed, 0, boolean | hashable | all},
	0x42: {fixed, 0, boolean | hashable | all},
	0x43: {fixed, 0, uint32s | unsigned | hashable | all},
	0x44: {fixed, 0, unsigned | hashable | all},
	0x45: {fixed, 0, listed | all},
	0x50: {fixed, 1, ubyte | unsigned | hashable | all},
	0x51: {fixed, 1, hashable | all},
	0x52: {fixed, 1, uint32s | unsigned | hashable | all},
	0x53: {fixed, 1, unsigned | hashable | all},
	0x54: {fixed, 1, hashable | all},
	0x55: {fixed, 1, hashable | all},
	0x56: {fixed, 1, boolean | hashable | all},
	0x60: {fixed, 2, unsigned | hashable | all},
	0x61: {fixed, 2, hashable | all},
	0x70: {fixed, 4, uint32s | unsigned | hashable | all},
	0x71: {fixed, 4, hashable | all},
	0x72: {fixed, 4, hashable | all},
	0x80: {fixed, 8, unsigned | hashable | all},
	0x81: {fixed, 8, hashable | all},
	0x82: {fixed, 8, hashable | all},
	0x83: {fixed, 8, timestamp | hashable | all},
	0x98: {fixed, 16, hashable | all},
	0xa0: {variable, 1, binaries | all},
	0xa1: {variable, 1, text | hashable | all},
	0xa3: {variable, 1, text | hashable | all},
	0xb0: {variable, 4, binaries | all},
	0xb1: {variable, 4, text | hashable | all},
	0xb3: {variable, 4, text | hashable | all},
	0xc0: {ofList, 1, listed | all},
	0xc1: {ofMap, 1, mapped | all},
	0xd0: {ofList, 4, listed | all},
	0xd1: {ofMap, 4, mapped | all},
	0xe0: {ofArray, 1, all},
	0xf0: {ofArray, 4, all},
}

// Constructors that are meant by themselves.
const (
	nullCode       = 0x40
	trueCode       = 0x41
	uint0Code      = 0x43
	list0Code      = 0x45
	smallUintCode  = 0x52
	smallUlongCode = 0x53
	boolCode       = 0x56
	uintCode       = 0x70
	ulongCode      = 0x80
	list8Code      = 0xc0
	list32Code     = 0xd0
)

// Sections of a message by their descriptors (AMQP 1.0, section 3.2).
const (
	headerCode        = 0x70
	propertiesCode    = 0x73
	appPropertiesCode = 0x74
)

// sections are what a section's value may be.
var sections = [256]class{
	headerCode:        listed,
	0x71:              mapped | null, // delivery annotations
	0x72:              mapped | null, // message annotations
	propertiesCode:    listed,
	appPropertiesCode: mapped | null,
	0x75:              binaries | null, // data
	0x76:              listed | null,   // sequence
	0x77:              all,             // value
	0x78:              mapped | null,   // footer
}

// fields are what the fields of a header and of the properties may be.
var fields = [256][]class{
	headerCode: {boolean | null, ubyte | null, unsigned | null, boolean | null, uint32s | null},
	propertiesCode: {
		all, binaries | null, text | null, text | null, text | null, all, text | null, text | null,
		timestamp | null, timestamp | null, text | null, uint32s | null, text | null,
	},
}

// isComposite tells whether go-amqp takes a value with the descriptor for a composite, whose
// fields it decodes as those of that type or refuses to (readComposite).
func isComposite(descriptor uint64) bool {
	switch {
	case descriptor >= 0x10 && descriptor <= 0x18, descriptor == 0x1d, descriptor >= 0x23 && descriptor <= 0x29,
		descriptor >= 0x2b && descriptor <= 0x2e, descriptor >= 0x40 && descriptor <= 0x44,
		descriptor >= 0x70 && descriptor <= 0x78:
		return true
	}
	return false
}
