package amqp

// Settlement modes of a sender (section 2.8.2) and a receiver (section 2.8.3).
const (
	SenderUnsettled = 0
	SenderSettled   = 1
	SenderMixed     = 2

	ReceiverFirst  = 0
	ReceiverSecond = 1
)

// Attach attaches a link to a session (section 2.7.3).
type Attach struct {
	Name                 string
	Handle               uint32
	Role                 bool
	SenderMode           uint8
	ReceiverMode         uint8
	Source               *Source
	Target               *Target
	InitialDeliveryCount Optional
	// MaxMessageSize is in bytes; 0 means no limit.
	MaxMessageSize uint64
	Properties     Map
}

func (p *Attach) append(b []byte) []byte {
	c := beginComposite(b, descAttach)
	c.string(p.Name)
	c.uint(p.Handle)
	c.bool(p.Role)
	c.value(p.SenderMode)
	c.value(p.ReceiverMode)
	if p.Source != nil {
		c.set(p.Source.append(c.b))
	} else {
		c.null()
	}
	if p.Target != nil {
		c.set(p.Target.append(c.b))
	} else {
		c.null()
	}
	c.nulls(2) // unsettled deliveries
	c.optional(p.InitialDeliveryCount)
	if p.MaxMessageSize > 0 {
		c.value(p.MaxMessageSize)
	} else {
		c.null()
	}
	c.nulls(2) // capabilities
	c.mapping(p.Properties)
	return c.end()
}

func (p *Attach) read(f *fields) {
	p.Name = f.text()
	p.Handle = f.uintOr(0)
	p.Role = f.flag()
	p.SenderMode = f.ubyteOr(SenderMixed)
	p.ReceiverMode = f.ubyteOr(ReceiverFirst)
	p.Source = f.source()
	p.Target = f.target()
	f.value()
	f.value()
	p.InitialDeliveryCount = f.optional()
	p.MaxMessageSize = f.ulongOr(0)
	f.value()
	f.value()
	p.Properties = f.mapping()
}

// Source is the node a link takes messages from (section 3.5.3).
type Source struct {
	Address          string
	Durable          uint32
	ExpiryPolicy     string
	Timeout          uint32
	Dynamic          bool
	DistributionMode string
	Filter           Map
	Capabilities     []Symbol
}

func (s *Source) append(b []byte) []byte {
	c := beginComposite(b, descSource)
	c.text(s.Address)
	c.uint(s.Durable)
	c.symbol(s.ExpiryPolicy)
	c.uint(s.Timeout)
	c.flag(s.Dynamic)
	c.null()
	c.symbol(s.DistributionMode)
	c.mapping(s.Filter)
	c.nulls(2) // outcomes
	c.symbols(s.Capabilities)
	return c.end()
}

func (f *fields) source() *Source {
	if f.absent() {
		return nil
	}
	if code := f.descriptor(); code != descSource {
		f.unexpected("source", byte(code))
		return nil
	}
	l := f.list()
	s := &Source{Address: l.text(), Durable: l.uintOr(0), ExpiryPolicy: l.text(), Timeout: l.uintOr(0), Dynamic: l.flag()}
	l.value()
	s.DistributionMode = l.text()
	s.Filter = l.mapping()
	l.value()
	l.value()
	s.Capabilities = l.symbols()
	l.close()
	return s
}

// Target is the node a link brings messages to (section 3.5.4).
type Target struct {
	Address      string
	Durable      uint32
	ExpiryPolicy string
	Timeout      uint32
	Dynamic      bool
	Capabilities []Symbol
	// Coordinator tells that the target is a transaction coordinator (part 4, section 4.5.1) and nothing else is set.
	Coordinator bool
}

func (t *Target) append(b []byte) []byte {
	if t.Coordinator {
		c := beginComposite(b, descCoordinator)
		return c.end()
	}
	c := beginComposite(b, descTarget)
	c.text(t.Address)
	c.uint(t.Durable)
	c.symbol(t.ExpiryPolicy)
	c.uint(t.Timeout)
	c.flag(t.Dynamic)
	c.null()
	c.symbols(t.Capabilities)
	return c.end()
}

func (f *fields) target() *Target {
	if f.absent() {
		return nil
	}
	code := f.descriptor()
	l := f.list()
	switch code {
	case descCoordinator:
		l.close()
		return &Target{Coordinator: true}
	case descTarget:
		t := &Target{Address: l.text(), Durable: l.uintOr(0), ExpiryPolicy: l.text(), Timeout: l.uintOr(0), Dynamic: l.flag()}
		l.value()
		t.Capabilities = l.symbols()
		l.close()
		return t
	}
	f.unexpected("target", byte(code))
	return nil
}

// Detach detaches a link from a session (section 2.7.7).
type Detach struct {
	Handle uint32
	Closed bool
	Error  *Error
}

func (p *Detach) append(b []byte) []byte {
	c := beginComposite(b, descDetach)
	c.uint(p.Handle)
	c.flag(p.Closed)
	c.failure(p.Error)
	return c.end()
}

func (p *Detach) read(f *fields) {
	p.Handle = f.uintOr(0)
	p.Closed = f.flag()
	p.Error = f.failure()
}
