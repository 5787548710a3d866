package amqp

import (
	"errors"
	"fmt"
	"time"
)

// Header holds the transport's details of a message (part 3, section 3.2.1).
type Header struct {
	Durable  bool
	Priority uint8
	// TTL is in milliseconds.
	TTL           Optional
	FirstAcquirer bool
	DeliveryCount uint32
}

const defaultPriority = 4

// AppendHeader appends a header section.
func AppendHeader(b []byte, h Header) []byte {
	c := beginComposite(b, descHeader)
	c.flag(h.Durable)
	if h.Priority != 0 && h.Priority != defaultPriority {
		c.value(h.Priority)
	} else {
		c.null()
	}
	c.optional(h.TTL)
	c.flag(h.FirstAcquirer)
	c.uint(h.DeliveryCount)
	return c.end()
}

func (h *Header) read(f *fields) {
	h.Durable = f.flag()
	h.Priority = f.ubyteOr(defaultPriority)
	h.TTL = f.optional()
	h.FirstAcquirer = f.flag()
	h.DeliveryCount = f.uintOr(0)
}

// Properties are the immutable properties of a message (section 3.2.4). An absent text is "", except GroupID, where the
// service tells absent from empty.
type Properties struct {
	// MessageID and CorrelationID are a uint64, UUID, []byte or string, or nil.
	MessageID       any
	UserID          []byte
	To              string
	Subject         string
	ReplyTo         string
	CorrelationID   any
	ContentType     string
	ContentEncoding string
	AbsoluteExpiry  time.Time
	Creation        time.Time
	GroupID         *string
	GroupSequence   Optional
	ReplyToGroupID  string
}

// AppendProperties appends a properties section.
func AppendProperties(b []byte, p *Properties) []byte {
	c := beginComposite(b, descProperties)
	c.value(p.MessageID)
	if p.UserID != nil {
		c.value(p.UserID)
	} else {
		c.null()
	}
	c.text(p.To)
	c.text(p.Subject)
	c.text(p.ReplyTo)
	c.value(p.CorrelationID)
	c.symbol(p.ContentType)
	c.symbol(p.ContentEncoding)
	c.timestamp(p.AbsoluteExpiry)
	c.timestamp(p.Creation)
	if p.GroupID != nil {
		c.string(*p.GroupID)
	} else {
		c.null()
	}
	c.optional(p.GroupSequence)
	c.text(p.ReplyToGroupID)
	return c.end()
}

func (p *Properties) read(f *fields) {
	p.MessageID = f.value()
	p.UserID = f.binary()
	p.To, p.Subject, p.ReplyTo = f.text(), f.text(), f.text()
	p.CorrelationID = f.value()
	p.ContentType, p.ContentEncoding = f.text(), f.text()
	p.AbsoluteExpiry, _ = f.value().(time.Time)
	p.Creation, _ = f.value().(time.Time)
	if !f.absent() {
		id := f.Text()
		p.GroupID = &id
	}
	p.GroupSequence = f.optional()
	p.ReplyToGroupID = f.text()
}

func (c *composite) timestamp(t time.Time) {
	if t.IsZero() {
		c.null()
		return
	}
	c.set(AppendTimestamp(c.b, t))
}

// Message is a message taken apart into its sections (section 3.2). The body stays encoded.
type Message struct {
	Header                Header
	DeliveryAnnotations   Map
	Annotations           Map
	Properties            Properties
	ApplicationProperties Map

	// Bare is the bare message and what follows it, as it came: from the properties to the footer.
	Bare []byte
	// Body is the body's sections within Bare.
	Body []byte
}

var errSections = errors.New("message sections are out of order")

// ReadMessage takes a message apart. Bare and Body are sub-slices of raw.
func ReadMessage(raw []byte) (*Message, error) {
	r := Reader{buf: raw}
	m := &Message{}
	bare, body, bodyEnd := -1, -1, -1
	last := uint64(0)
	for r.Len() > 0 && r.err == nil {
		start := r.pos
		code := r.descriptor()
		if code < last || (code == last && code != descData && code != descSequence) {
			return nil, errSections
		}
		last = code
		if code >= descProperties && bare < 0 {
			bare = start
		}
		if code >= descData && code <= descValue && body < 0 {
			body = start
		}
		if code == descFooter {
			bodyEnd = start
		}
		m.section(&r, code)
	}
	if r.err != nil {
		return nil, r.err
	}
	if bare >= 0 {
		m.Bare = raw[bare:]
	}
	if body >= 0 {
		if bodyEnd < 0 {
			bodyEnd = len(raw)
		}
		m.Body = raw[body:bodyEnd]
	}
	return m, nil
}

func (m *Message) section(r *Reader, code uint64) {
	switch code {
	case descHeader:
		f := r.list()
		m.Header.read(&f)
		f.close()
	case descDeliveryAnnotations:
		m.DeliveryAnnotations = r.Map()
	case descMessageAnnotations:
		m.Annotations = r.Map()
	case descProperties:
		f := r.list()
		m.Properties.read(&f)
		f.close()
	case descApplicationProperties:
		m.ApplicationProperties = r.Map()
	case descData, descSequence, descValue, descFooter:
		r.Skip()
	default:
		r.fail(fmt.Errorf("unknown section 0x%02x", code))
	}
}

// Value decodes a body that is a single value (section 3.2.8).
func (m *Message) Value() (any, error) {
	r := Reader{buf: m.Body}
	if code := r.descriptor(); r.err == nil && code != descValue {
		return nil, fmt.Errorf("body is section 0x%02x, want a value", code)
	}
	v := r.Value()
	return v, r.err
}

// Data returns the contents of a body of data sections (section 3.2.6) as sub-slices.
func (m *Message) Data() ([][]byte, error) {
	r := Reader{buf: m.Body}
	var out [][]byte
	for r.Len() > 0 {
		if code := r.descriptor(); r.err == nil && code != descData {
			return nil, fmt.Errorf("body is section 0x%02x, want data", code)
		}
		out = append(out, r.Binary())
		if r.err != nil {
			return nil, r.err
		}
	}
	return out, nil
}

// AppendAnnotations appends the descriptor of a message-annotations section (section 3.2.3) and its map.
func AppendAnnotations(b []byte, m Map) []byte {
	return AppendMap(AppendDescriptor(b, descMessageAnnotations), m)
}

// AppendDeliveryAnnotations appends a delivery-annotations section (section 3.2.2).
func AppendDeliveryAnnotations(b []byte, m Map) []byte {
	return AppendMap(AppendDescriptor(b, descDeliveryAnnotations), m)
}

// AppendApplicationProperties appends an application-properties section (section 3.2.5).
func AppendApplicationProperties(b []byte, m Map) []byte {
	return AppendMap(AppendDescriptor(b, descApplicationProperties), m)
}

// AppendBodyValue appends a body that is a single value (section 3.2.8).
func AppendBodyValue(b []byte, v any) []byte {
	return AppendValue(AppendDescriptor(b, descValue), v)
}

// AppendBodyData appends a body that is bytes (section 3.2.6).
func AppendBodyData(b, data []byte) []byte {
	return AppendBinary(AppendDescriptor(b, descData), data)
}
