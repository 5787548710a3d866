package amqp

import (
	"fmt"
	"math"
)

// Performative is the body of a frame: one of *Open, *Begin, *Attach, *Flow, *Transfer, *Disposition, *Detach, *End,
// *Close or the SASL frames.
type Performative interface {
	append(b []byte) []byte
	read(f *fields)
}

// Roles of a link endpoint (section 2.8.1).
const (
	RoleSender   = false
	RoleReceiver = true
)

// Open negotiates the connection (section 2.7.1).
type Open struct {
	ContainerID  string
	Hostname     string
	MaxFrameSize uint32
	ChannelMax   uint16
	// IdleTimeout is in milliseconds; 0 means none.
	IdleTimeout uint32
	Properties  Map
}

func (o *Open) append(b []byte) []byte {
	c := beginComposite(b, descOpen)
	c.string(o.ContainerID)
	c.text(o.Hostname)
	c.uint(o.MaxFrameSize)
	c.value(o.ChannelMax)
	c.optional(Optional{Value: o.IdleTimeout, Set: o.IdleTimeout > 0})
	c.nulls(4) // locales and capabilities
	c.mapping(o.Properties)
	return c.end()
}

func (o *Open) read(f *fields) {
	o.ContainerID, o.Hostname = f.text(), f.text()
	o.MaxFrameSize = f.uintOr(math.MaxUint32)
	o.ChannelMax = f.ushortOr(math.MaxUint16)
	o.IdleTimeout = f.uintOr(0)
	for range 4 {
		f.value()
	}
	o.Properties = f.mapping()
}

// Begin starts a session on a channel (section 2.7.2).
type Begin struct {
	// RemoteChannel is set in the answer to a begin.
	RemoteChannel  Optional
	NextOutgoingID uint32
	IncomingWindow uint32
	OutgoingWindow uint32
	HandleMax      uint32
}

func (p *Begin) append(b []byte) []byte {
	c := beginComposite(b, descBegin)
	if p.RemoteChannel.Set {
		c.value(uint16(p.RemoteChannel.Value))
	} else {
		c.null()
	}
	c.uint(p.NextOutgoingID)
	c.uint(p.IncomingWindow)
	c.uint(p.OutgoingWindow)
	c.uint(p.HandleMax)
	c.nulls(3) // capabilities and properties
	return c.end()
}

func (p *Begin) read(f *fields) {
	if !f.absent() {
		p.RemoteChannel = Some(uint32(f.Ushort()))
	}
	p.NextOutgoingID = f.uintOr(0)
	p.IncomingWindow = f.uintOr(0)
	p.OutgoingWindow = f.uintOr(0)
	p.HandleMax = f.uintOr(math.MaxUint32)
}

// Flow updates the state of a session, and of a link when a handle is given (section 2.7.4).
type Flow struct {
	NextIncomingID Optional
	IncomingWindow uint32
	NextOutgoingID uint32
	OutgoingWindow uint32
	Handle         Optional
	DeliveryCount  Optional
	LinkCredit     Optional
	Available      Optional
	Drain          bool
	Echo           bool
}

func (p *Flow) append(b []byte) []byte {
	c := beginComposite(b, descFlow)
	c.optional(p.NextIncomingID)
	c.uint(p.IncomingWindow)
	c.uint(p.NextOutgoingID)
	c.uint(p.OutgoingWindow)
	c.optional(p.Handle)
	c.optional(p.DeliveryCount)
	c.optional(p.LinkCredit)
	c.optional(p.Available)
	c.flag(p.Drain)
	c.flag(p.Echo)
	c.null() // properties
	return c.end()
}

func (p *Flow) read(f *fields) {
	p.NextIncomingID = f.optional()
	p.IncomingWindow = f.uintOr(0)
	p.NextOutgoingID = f.uintOr(0)
	p.OutgoingWindow = f.uintOr(0)
	p.Handle, p.DeliveryCount, p.LinkCredit, p.Available = f.optional(), f.optional(), f.optional(), f.optional()
	p.Drain, p.Echo = f.flag(), f.flag()
}

// End ends a session (section 2.7.8).
type End struct{ Error *Error }

func (p *End) append(b []byte) []byte { return appendErrorOnly(b, descEnd, p.Error) }
func (p *End) read(f *fields)         { p.Error = f.failure() }

// Close ends a connection (section 2.7.9).
type Close struct{ Error *Error }

func (p *Close) append(b []byte) []byte { return appendErrorOnly(b, descClose, p.Error) }
func (p *Close) read(f *fields)         { p.Error = f.failure() }

func appendErrorOnly(b []byte, code uint64, e *Error) []byte {
	c := beginComposite(b, code)
	c.failure(e)
	return c.end()
}

// newPerformative returns the empty performative for a descriptor, or nil.
func newPerformative(code uint64) Performative {
	switch code {
	case descOpen:
		return &Open{}
	case descBegin:
		return &Begin{}
	case descAttach:
		return &Attach{}
	case descFlow:
		return &Flow{}
	case descTransfer:
		return &Transfer{}
	case descDisposition:
		return &Disposition{}
	case descDetach:
		return &Detach{}
	case descEnd:
		return &End{}
	case descClose:
		return &Close{}
	case descSASLMechanisms:
		return &SASLMechanisms{}
	case descSASLInit:
		return &SASLInit{}
	case descSASLOutcome:
		return &SASLOutcome{}
	}
	return nil
}

// ReadPerformative decodes the body of a frame. The payload behind a transfer is returned as a sub-slice of body.
func ReadPerformative(body []byte) (p Performative, payload []byte, err error) {
	r := Reader{buf: body}
	code := r.descriptor()
	if r.err != nil {
		return nil, nil, r.err
	}
	if p = newPerformative(code); p == nil {
		return nil, nil, fmt.Errorf("unknown performative 0x%02x", code)
	}
	f := r.list()
	p.read(&f)
	f.close()
	if r.err != nil {
		return nil, nil, r.err
	}
	return p, body[r.pos:], nil
}
