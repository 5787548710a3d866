package amqp

// Transfer carries a message or a part of one (section 2.7.5). The payload follows it in the frame.
type Transfer struct {
	Handle        uint32
	DeliveryID    Optional
	DeliveryTag   []byte
	MessageFormat Optional
	Settled       bool
	More          bool
	State         State
	Resume        bool
	Aborted       bool
	Batchable     bool
}

func (p *Transfer) append(b []byte) []byte {
	c := beginComposite(b, descTransfer)
	c.uint(p.Handle)
	c.optional(p.DeliveryID)
	if p.DeliveryTag != nil {
		c.set(AppendBinary(c.b, p.DeliveryTag))
	} else {
		c.null()
	}
	c.optional(p.MessageFormat)
	c.flag(p.Settled)
	c.flag(p.More)
	c.null()
	c.state(p.State)
	c.flag(p.Resume)
	c.flag(p.Aborted)
	c.flag(p.Batchable)
	return c.end()
}

func (p *Transfer) read(f *fields) {
	p.Handle = f.uintOr(0)
	p.DeliveryID = f.optional()
	p.DeliveryTag = f.binary()
	p.MessageFormat = f.optional()
	p.Settled, p.More = f.flag(), f.flag()
	f.ubyteOr(0)
	p.State = f.state()
	p.Resume, p.Aborted, p.Batchable = f.flag(), f.flag(), f.flag()
}

// Disposition tells the state of the deliveries First to Last (section 2.7.6).
type Disposition struct {
	Role  bool
	First uint32
	// Last equals First when it is not set.
	Last      Optional
	Settled   bool
	State     State
	Batchable bool
}

func (p *Disposition) append(b []byte) []byte {
	c := beginComposite(b, descDisposition)
	c.bool(p.Role)
	c.uint(p.First)
	c.optional(p.Last)
	c.flag(p.Settled)
	c.state(p.State)
	c.flag(p.Batchable)
	return c.end()
}

func (p *Disposition) read(f *fields) {
	p.Role = f.flag()
	p.First = f.uintOr(0)
	p.Last = f.optional()
	p.Settled = f.flag()
	p.State = f.state()
	p.Batchable = f.flag()
}
