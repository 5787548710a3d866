package decodable

const (
	// depthMost is how deep values may be nested.
	depthMost = 32
	// countMost is how many values a list, a map or an array may have (go-amqp's
	// maxCompoundCount).
	countMost = 65536
	// noType is a byte that is the constructor of no type, and begins no section.
	noType = 0xff
	// peekedAt is how deep in an answer of $management a message is: in a map in a list in a
	// map (https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-request-response).
	peekedAt = 3
)

// step is what the next byte of a message is.
type step uint8

const (
	atSection step = iota // the zero that begins a section
	atDescriptor
	inNumber // of what then says
	atValue
	atElements // the constructor of an array's elements
)

// then is what a number is.
type then uint8

const (
	section    then = iota
	descriptor      // of a value
	length          // of what follows
	element         // the length of an array's next element
	listSize        // and its count, as the next three
	mapSize
	arraySize
	elementSize // of a map in an array
)

// walker follows a message that comes in pieces, as go-amqp will decode it. The zero value is
// at the beginning of one.
type walker struct {
	bad  bool // the message is refused
	left bool // what go-amqp has not decoded of it begins before what was overwritten
	step step
	then then
	// wanted is how many bytes of the number that is read have not come, and number what they
	// are so far. width is what the constructor before it says.
	wanted, width uint8
	number        uint64
	skip          int64 // bytes that are no constructors, and come next
	// at is how many bytes have come, and reach up to where there have to be any. end is how
	// many there are; 0 before that is known. Where reach came to be beyond the end before that
	// was known, go-amqp stops at a size or a length that it was given, before what is
	// overwritten, and decodes the bytes behind it as sections once another message comes.
	at, reach, end int64
	section        byte
	count          uint32 // of an array
	elements       uint32 // of an array that have not come and have a length each
	depth          int
	open           [depthMost]open

	answers bool // the message is an answer of $management, which may carry messages
	peeked  bool // what is passed over is such a message
	within  *walker
}

// open is a value whose parts come.
type open struct {
	left      uint32 // parts
	even, odd class  // what the next one may be, by what is left
	fields    uint8  // how many parts are fields of the section; 0 where they are not
	describes bool
	maps      uint8 // of an array of maps: the width of their sizes
}

func (w *walker) reset(answers bool) {
	within := w.within
	*w = walker{answers: answers, within: within}
}

// walk follows the next piece of the message, and overwrites it from where the message is
// refused.
func (w *walker) walk(piece []byte) {
	for i := 0; i < len(piece); {
		if w.bad {
			overwrite(piece[i:])
			w.at += int64(len(piece) - i)
			return
		}
		if w.skip > 0 {
			n := int(min(w.skip, int64(len(piece)-i)))
			if w.peeked {
				w.within.walk(piece[i : i+n])
			}
			i += n
			w.at += int64(n)
			if w.skip -= int64(n); w.skip == 0 {
				w.passed()
			}
			continue
		}
		if n := w.simple(piece[i:]); n > 0 {
			i += n
			continue
		}
		w.at++
		if !w.take(piece[i]) || w.bad {
			w.bad = true
			w.at--
			continue // with this byte
		}
		i++
	}
}

// simple follows a value that has no parts and has come as a whole, as most do, and returns
// how many bytes that is; 0 where the next is none. It is a shortcut:
// take, byte by byte, comes to the same.
func (w *walker) simple(piece []byte) int {
	if w.step != atValue || w.answers {
		return 0
	}
	c := &constructors[piece[0]]
	n := 1 + int(c.width)
	switch {
	case c.is&w.wants() == 0, piece[0] == smallUlongCode, piece[0] == ulongCode:
		return 0
	case c.form == fixed:
	case c.form == variable && c.width == 1 && len(piece) > 1:
		n += int(piece[1])
	default:
		return 0
	}
	if n > len(piece) {
		return 0
	}
	w.at += int64(n)
	w.done()
	return n
}

func overwrite(piece []byte) {
	for i := range piece {
		piece[i] = noType
	}
}

// whole tells whether the message may end here.
func (w *walker) whole() bool {
	return !w.bad && w.step == atSection && w.reach <= w.at
}

// take follows one byte, and tells whether go-amqp may be given it.
func (w *walker) take(b byte) bool {
	switch w.step {
	case atSection:
		w.step = atDescriptor
		return b == 0
	case atDescriptor:
		if b != smallUlongCode && b != ulongCode {
			return false
		}
		w.read(constructors[b].width, section)
		return true
	case inNumber:
		w.number = w.number<<8 | uint64(b)
		w.wanted--
		return w.wanted > 0 || w.known()
	case atValue:
		return w.value(b)
	default:
		return w.arrayOf(b)
	}
}

// read has a number of so many bytes come next.
func (w *walker) read(bytes uint8, then then) {
	w.step, w.then, w.wanted, w.number = inNumber, then, bytes, 0
	w.needs(w.at + int64(bytes))
}

// needs notes up to where there have to be bytes, and refuses the message where there are not.
func (w *walker) needs(upTo int64) {
	if w.end > 0 && upTo > w.end {
		w.bad = true
		return
	}
	w.reach = max(w.reach, upTo)
}

// known goes on after a number.
func (w *walker) known() bool {
	switch w.then {
	case section:
		w.section, w.step = byte(w.number), atValue // go-amqp's PeekMessageType looks at no more of it
		return sections[w.section] != 0
	case descriptor:
		if isComposite(w.number) {
			return false
		}
		w.done()
	case length, element:
		w.pass(int64(w.number))
	case listSize:
		return w.listOf(w.sizes())
	case mapSize, elementSize:
		return w.mapOf(w.sizes())
	case arraySize:
		size, count := w.sizes()
		w.count, w.step = count, atElements
		return w.fits(size, count)
	}
	return true
}

// sizes are the size and the count that a number consists of.
func (w *walker) sizes() (size, count uint32) {
	bits := 8 * w.width
	return uint32(w.number >> bits), uint32(w.number & (1<<bits - 1))
}

// wants is what the next value may be.
func (w *walker) wants() class {
	if w.depth == 0 {
		return sections[w.section]
	}
	in := &w.open[w.depth-1]
	switch {
	case in.fields > 0:
		return fields[w.section][uint32(in.fields)-in.left]
	case in.left%2 == 0:
		return in.even
	}
	return in.odd
}

// value goes on after a value's constructor.
func (w *walker) value(b byte) bool {
	c := constructors[b]
	wants := w.wants()
	if c.is&wants == 0 {
		return false
	}
	w.width = c.width
	switch c.form {
	case fixed:
		if w.depth > 0 && (b == smallUlongCode || b == ulongCode) {
			if in := &w.open[w.depth-1]; in.describes && in.left == 2 {
				w.read(c.width, descriptor)
				return true
			}
		}
		w.pass(int64(c.width))
	case variable:
		w.peeked = w.answers && w.depth == peekedAt && c.is&binaries != 0
		w.read(c.width, length)
	case ofList:
		w.read(2*c.width, listSize)
		return w.depth < depthMost
	case ofMap:
		w.read(2*c.width, mapSize)
		return w.depth < depthMost
	case ofArray:
		w.read(2*c.width, arraySize)
	case described:
		of := all
		if wants&all == 0 {
			of = hashable
		}
		return w.enter(open{left: 2, even: of, odd: of, describes: true})
	}
	return true
}

// enter has the parts of a value come next.
func (w *walker) enter(o open) bool {
	if w.depth == depthMost {
		return false
	}
	w.step = atValue
	if o.left == 0 {
		w.done()
		return true
	}
	w.open[w.depth] = o
	w.depth++
	if o.maps != 0 {
		w.next()
	}
	return true
}

// fits notes what go-amqp asks of the size and the count of a list or an array.
func (w *walker) fits(size, count uint32) bool {
	w.needs(w.at - int64(w.width) + int64(size))
	return count <= countMost && int64(count) <= int64(size)-int64(w.width)
}

func (w *walker) listOf(size, count uint32) bool {
	o := open{left: count, even: all, odd: all}
	if of := fields[w.section]; of != nil && w.depth == 0 {
		if count > uint32(len(of)) {
			return false
		}
		o.fields = uint8(count)
	}
	return w.fits(size, count) && w.enter(o)
}

// mapOf goes on after a map's size and count. go-amqp asks less of them than of a list's, and
// decodes a pair too where the count is odd.
func (w *walker) mapOf(size, count uint32) bool {
	w.needs(max(w.at-int64(w.width)+int64(size), w.at+int64(count)))
	keys := hashable
	if w.depth == 0 && w.section == appPropertiesCode {
		keys = text
	}
	return count <= countMost && w.enter(open{left: count + count%2, even: keys, odd: all})
}

// arrayOf goes on after the constructor of an array's elements.
func (w *walker) arrayOf(b byte) bool {
	c := constructors[b]
	switch c.form {
	case fixed:
		w.pass(int64(w.count) * int64(c.width))
		// Many that have no bytes would take memory that the message has nothing for.
		return c.is&(null|listed) == 0 && (c.width > 0 || w.count < 2)
	case variable:
		w.needs(w.at - 1 + 2*int64(w.count)) // as go-amqp counts
		w.width, w.elements = c.width, w.count
		if w.count == 0 {
			w.done()
		} else {
			w.read(c.width, element)
		}
		return true
	case ofMap:
		return w.enter(open{left: w.count, maps: c.width})
	}
	return false
}

// pass has bytes come next that are no constructors, and end a value.
func (w *walker) pass(bytes int64) {
	w.skip = bytes
	w.needs(w.at + bytes)
	switch {
	case bytes == 0:
		w.passed()
	case w.peeked:
		if w.within == nil {
			w.within = new(walker)
		}
		w.within.reset(false)
	}
}

func (w *walker) passed() {
	w.peeked = false
	if w.elements > 1 {
		w.elements--
		w.read(w.width, element)
		return
	}
	w.elements = 0
	w.done()
}

// done goes on after a value.
func (w *walker) done() {
	for w.depth > 0 {
		in := &w.open[w.depth-1]
		if in.left--; in.left > 0 {
			w.next()
			return
		}
		w.depth--
	}
	w.step = atSection
}

// next goes on with the next part of the innermost open value.
func (w *walker) next() {
	w.step = atValue
	if width := w.open[w.depth-1].maps; width != 0 {
		w.width = width
		w.read(2*width, elementSize)
	}
}
