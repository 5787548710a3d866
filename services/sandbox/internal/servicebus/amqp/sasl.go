package amqp

// Outcomes of SASL (part 5, section 5.3.3.6).
const (
	SASLOK   = 0
	SASLAuth = 1
)

// SASLMechanisms announces the mechanisms of the server (section 5.3.3.1).
type SASLMechanisms struct{ Mechanisms []Symbol }

func (p *SASLMechanisms) append(b []byte) []byte {
	c := beginComposite(b, descSASLMechanisms)
	c.symbols(p.Mechanisms)
	return c.end()
}

func (p *SASLMechanisms) read(f *fields) { p.Mechanisms = f.symbols() }

// SASLInit selects a mechanism (section 5.3.3.2).
type SASLInit struct {
	Mechanism       string
	InitialResponse []byte
	Hostname        string
}

func (p *SASLInit) append(b []byte) []byte {
	c := beginComposite(b, descSASLInit)
	c.symbol(p.Mechanism)
	c.set(AppendBinary(c.b, p.InitialResponse))
	c.text(p.Hostname)
	return c.end()
}

func (p *SASLInit) read(f *fields) {
	p.Mechanism, p.InitialResponse, p.Hostname = f.text(), f.binary(), f.text()
}

// SASLOutcome ends the exchange (section 5.3.3.6).
type SASLOutcome struct{ Code uint8 }

func (p *SASLOutcome) append(b []byte) []byte {
	c := beginComposite(b, descSASLOutcome)
	c.value(p.Code)
	return c.end()
}

func (p *SASLOutcome) read(f *fields) { p.Code = f.ubyteOr(SASLOK) }

// ProtocolHeader is what each side sends first (part 2, section 2.2).
type ProtocolHeader [8]byte

// Headers of the plain protocol and of SASL (section 5.3.1).
var (
	HeaderAMQP = ProtocolHeader{'A', 'M', 'Q', 'P', 0, 1, 0, 0}
	HeaderSASL = ProtocolHeader{'A', 'M', 'Q', 'P', 3, 1, 0, 0}
)
