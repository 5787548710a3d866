package amqp

import "fmt"

// State is a delivery state (part 3, section 3.4): Accepted, Rejected, Released, Modified, Received or Transactional.
type State interface {
	appendState(b []byte) []byte
}

// Received tells how much of a delivery arrived (section 3.4.1). It is not an outcome.
type Received struct {
	SectionNumber uint32
	SectionOffset uint64
}

// Accepted is the outcome of a message that was processed (section 3.4.2).
type Accepted struct{}

// Rejected is the outcome of a message that is invalid (section 3.4.3).
type Rejected struct{ Error *Error }

// Released is the outcome of a message that was not and will not be acted upon (section 3.4.4).
type Released struct{}

// Modified is the outcome of a message that was modified, but not processed (section 3.4.5).
type Modified struct {
	DeliveryFailed     bool
	UndeliverableHere  bool
	MessageAnnotations Map
}

// Transactional is the state of a delivery within a transaction (part 4, section 4.5.8).
type Transactional struct{}

func (s Received) appendState(b []byte) []byte {
	c := beginComposite(b, descReceived)
	c.uint(s.SectionNumber)
	c.value(s.SectionOffset)
	return c.end()
}

func (Accepted) appendState(b []byte) []byte {
	return append(b, codeDescribed, codeSmallUlong, descAccepted, codeList0)
}

func (s Rejected) appendState(b []byte) []byte { return appendErrorOnly(b, descRejected, s.Error) }

func (Released) appendState(b []byte) []byte {
	return append(b, codeDescribed, codeSmallUlong, descReleased, codeList0)
}

func (s Modified) appendState(b []byte) []byte {
	c := beginComposite(b, descModified)
	c.flag(s.DeliveryFailed)
	c.flag(s.UndeliverableHere)
	c.mapping(s.MessageAnnotations)
	return c.end()
}

func (Transactional) appendState(b []byte) []byte {
	c := beginComposite(b, descTransactional)
	return c.end()
}

func (c *composite) state(s State) {
	if s != nil {
		c.set(s.appendState(c.b))
		return
	}
	c.null()
}

func (f *fields) state() State {
	if f.absent() {
		return nil
	}
	code := f.descriptor()
	l := f.list()
	defer l.close()
	switch code {
	case descReceived:
		return Received{SectionNumber: l.uintOr(0), SectionOffset: l.ulongOr(0)}
	case descAccepted:
		return Accepted{}
	case descRejected:
		return Rejected{Error: l.failure()}
	case descReleased:
		return Released{}
	case descModified:
		return Modified{DeliveryFailed: l.flag(), UndeliverableHere: l.flag(), MessageAnnotations: l.mapping()}
	case descTransactional:
		return Transactional{}
	}
	f.fail(fmt.Errorf("unknown delivery state 0x%02x", code))
	return nil
}
