package amqpserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/sas"
)

// handshakeTimeout bounds the time from the connection to the open.
const handshakeTimeout = 30 * time.Second

// Mechanisms of SASL. MSSBCBS stands for authorisation by $cbs; PLAIN carries a key name and a key.
const (
	saslMSSBCBS   = "MSSBCBS"
	saslPlain     = "PLAIN"
	saslAnonymous = "ANONYMOUS"
	saslExternal  = "EXTERNAL"
)

var errRefused = errors.New("peer was refused")

// handshake negotiates protocol headers, SASL and the open (part 2, sections 2.2 and 2.4.1; part 5, section 5.3).
func (c *conn) handshake() error {
	if err := c.nc.SetReadDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return err
	}
	header, err := c.readHeader()
	if err != nil {
		return err
	}
	if header == amqp.HeaderSASL {
		if err := c.sasl(); err != nil {
			return err
		}
		if header, err = c.readHeader(); err != nil {
			return err
		}
	}
	if header != amqp.HeaderAMQP {
		// Section 2.2: answer with a header that is supported, then close.
		_ = c.write(amqp.HeaderSASL[:], handshakeTimeout)
		return fmt.Errorf("protocol header %q: %w", header[:], errRefused)
	}
	if err := c.write(amqp.HeaderAMQP[:], handshakeTimeout); err != nil {
		return err
	}
	return c.open()
}

func (c *conn) readHeader() (amqp.ProtocolHeader, error) {
	var h amqp.ProtocolHeader
	_, err := io.ReadFull(c.in, h[:])
	return h, err
}

func (c *conn) sasl() error {
	if err := c.write(amqp.HeaderSASL[:], handshakeTimeout); err != nil {
		return err
	}
	mechanisms := []amqp.Symbol{saslMSSBCBS, saslPlain, saslAnonymous, saslExternal}
	if err := c.write(amqp.AppendFrame(nil, amqp.FrameSASL, 0, &amqp.SASLMechanisms{Mechanisms: mechanisms}), handshakeTimeout); err != nil {
		return err
	}
	p, err := c.readOne(amqp.FrameSASL)
	if err != nil {
		return err
	}
	init, ok := p.(*amqp.SASLInit)
	if !ok {
		return fmt.Errorf("%T in place of a SASL init: %w", p, errRefused)
	}
	code := uint8(amqp.SASLOK)
	if !c.authenticate(init) {
		code = amqp.SASLAuth
	}
	if err := c.write(amqp.AppendFrame(nil, amqp.FrameSASL, 0, &amqp.SASLOutcome{Code: code}), handshakeTimeout); err != nil {
		return err
	}
	if code != amqp.SASLOK {
		return fmt.Errorf("SASL %s: %w", init.Mechanism, errRefused)
	}
	return nil
}

// authenticate checks a mechanism. Only PLAIN proves anything by itself (RFC 4616): with a good key the connection has
// that key's rights without tokens.
func (c *conn) authenticate(init *amqp.SASLInit) bool {
	switch init.Mechanism {
	case saslMSSBCBS, saslAnonymous, saslExternal:
		return true
	case saslPlain:
		if c.srv.cfg.Keys == nil {
			return true
		}
		parts := bytes.Split(init.InitialResponse, []byte{0})
		if len(parts) != 3 {
			return false
		}
		key, ok := c.srv.cfg.Keys[string(parts[1])]
		if !ok || !sas.Equal(key.Secret, string(parts[2])) {
			return false
		}
		c.mu.Lock()
		c.proven = key.Rights
		c.mu.Unlock()
		return true
	}
	return false
}

// readOne reads the next frame that is not a heartbeat.
func (c *conn) readOne(kind byte) (amqp.Performative, error) {
	for {
		frame, err := c.frames.Read()
		if err != nil {
			return nil, err
		}
		if len(frame.Body) == 0 {
			continue
		}
		if frame.Type != kind {
			return nil, fmt.Errorf("frame of type %d: %w", frame.Type, errRefused)
		}
		p, _, err := amqp.ReadPerformative(frame.Body)
		return p, err
	}
}

// open exchanges the open performatives (part 2, section 2.7.1).
func (c *conn) open() error {
	p, err := c.readOne(amqp.FrameAMQP)
	if err != nil {
		return err
	}
	open, ok := p.(*amqp.Open)
	if !ok {
		return fmt.Errorf("%T in place of an open: %w", p, errRefused)
	}
	cfg := &c.srv.cfg
	c.maxSessions = min(cfg.MaxSessions, int(open.ChannelMax)+1)
	err = c.write(amqp.AppendFrame(nil, amqp.FrameAMQP, 0, &amqp.Open{
		ContainerID:  cfg.ContainerID,
		MaxFrameSize: cfg.MaxFrameBytes,
		ChannelMax:   uint16(c.maxSessions - 1),
		IdleTimeout:  uint32(cfg.IdleTimeout / 2 / time.Millisecond),
	}), handshakeTimeout)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opened = true
	c.peer = peer{
		container: open.ContainerID,
		maxFrame:  int(min(max(open.MaxFrameSize, amqp.MinMaxFrameSize), math.MaxInt32)),
		idle:      time.Duration(open.IdleTimeout) * time.Millisecond,
	}
	return err
}
