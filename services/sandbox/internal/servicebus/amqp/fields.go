package amqp

// fields reads the list of a composite type. Fields missing at the end count as null (section 1.4).
type fields struct {
	*Reader
	left int
	end  int
}

// list starts reading a list whose descriptor has been read.
func (r *Reader) list() fields {
	code := r.byte()
	switch code {
	case codeList0:
		return fields{Reader: r, end: r.pos}
	case codeList8, codeList32:
		n, end := r.compound(code)
		return fields{Reader: r, left: n, end: end}
	}
	r.unexpected("list", code)
	return fields{Reader: r, end: r.pos}
}

// close skips fields that are not known and checks that the list ends where its size says.
func (f *fields) close() {
	if f.err != nil {
		return
	}
	if f.pos > f.end {
		f.fail(errCount)
		return
	}
	f.pos = f.end
}

// absent consumes a field that is null or missing, and reports whether it was.
func (f *fields) absent() bool {
	if f.left == 0 || f.err != nil {
		return true
	}
	f.left--
	if f.pos >= f.end {
		f.fail(errCount)
		return true
	}
	if f.buf[f.pos] == codeNull {
		f.pos++
		return true
	}
	return false
}

func (f *fields) optional() Optional {
	if f.absent() {
		return Optional{}
	}
	return Some(f.Uint())
}

func (f *fields) uintOr(def uint32) uint32 {
	if f.absent() {
		return def
	}
	return f.Uint()
}

func (f *fields) ulongOr(def uint64) uint64 {
	if f.absent() {
		return def
	}
	return f.Ulong()
}

func (f *fields) ushortOr(def uint16) uint16 {
	if f.absent() {
		return def
	}
	return f.Ushort()
}

func (f *fields) ubyteOr(def uint8) uint8 {
	if f.absent() {
		return def
	}
	return f.Ubyte()
}

func (f *fields) flag() bool { return !f.absent() && f.Bool() }

func (f *fields) text() string {
	if f.absent() {
		return ""
	}
	return f.Text()
}

func (f *fields) binary() []byte {
	if f.absent() {
		return nil
	}
	return f.Binary()
}

func (f *fields) value() any {
	if f.absent() {
		return nil
	}
	return f.Value()
}

func (f *fields) mapping() Map {
	if f.absent() {
		return nil
	}
	return f.Map()
}

// symbols reads a field that may be one symbol or an array of them (part 1, section 1.4, multiple).
func (f *fields) symbols() []Symbol {
	switch v := f.value().(type) {
	case Symbol:
		return []Symbol{v}
	case Array:
		out := make([]Symbol, 0, len(v.Items))
		for _, item := range v.Items {
			s, _ := AsString(item)
			out = append(out, Symbol(s))
		}
		return out
	}
	return nil
}

// composite writes the list of a composite type with all its fields: nulls at the end may be left out (section 1.4), but
// the service writes them, and there are clients that look fields up by their index.
type composite struct {
	b     []byte
	start int
	n     int
}

func beginComposite(b []byte, code uint64) composite {
	b = append(AppendDescriptor(b, code), codeList8, 0, 0)
	return composite{b: b, start: len(b) - 2}
}

func (c *composite) set(b []byte) {
	c.b = b
	c.n++
}

func (c *composite) null() { c.set(append(c.b, codeNull)) }

// nulls writes the fields that are never set.
func (c *composite) nulls(n int) {
	for range n {
		c.null()
	}
}

func (c *composite) uint(v uint32)   { c.set(AppendUint(c.b, v)) }
func (c *composite) bool(v bool)     { c.set(AppendBool(c.b, v)) }
func (c *composite) string(v string) { c.set(AppendString(c.b, v)) }

func (c *composite) optional(v Optional) {
	if v.Set {
		c.uint(v.Value)
		return
	}
	c.null()
}

// flag writes a boolean whose default is false.
func (c *composite) flag(v bool) {
	if v {
		c.bool(true)
		return
	}
	c.null()
}

func (c *composite) text(v string) {
	if v != "" {
		c.string(v)
		return
	}
	c.null()
}

func (c *composite) symbol(v string) {
	if v != "" {
		c.set(AppendSymbol(c.b, Symbol(v)))
		return
	}
	c.null()
}

func (c *composite) value(v any) {
	if v != nil {
		c.set(AppendValue(c.b, v))
		return
	}
	c.null()
}

func (c *composite) mapping(m Map) {
	if m != nil {
		c.set(AppendMap(c.b, m))
		return
	}
	c.null()
}

func (c *composite) symbols(s []Symbol) {
	if len(s) > 0 {
		c.set(AppendValue(c.b, s))
		return
	}
	c.null()
}

// end fills in size and count, in the short form where the list fits it.
func (c *composite) end() []byte {
	b := c.b
	size := len(b) - c.start - 1
	switch {
	case c.n == 0:
		b[c.start-1] = codeList0
		return b[:c.start]
	case size < 256:
		b[c.start], b[c.start+1] = byte(size), byte(c.n)
		return b
	}
	b = append(b, 0, 0, 0, 0, 0, 0)
	copy(b[c.start+8:], b[c.start+2:len(b)-6])
	b[c.start-1] = codeList32
	return endCompound(b, c.start, c.n)
}
