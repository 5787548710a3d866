package amqpserver

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/sas"
)

// conn is one connection (part 2, section 2.4). See the package comment for its goroutines and its lock.
type conn struct {
	srv *Server
	nc  net.Conn
	log zerolog.Logger
	// ctx ends with the connection; lanes and pumps work under it.
	ctx    context.Context
	cancel context.CancelFunc
	// wg counts lanes, pumps and accepts.
	wg sync.WaitGroup

	// Owned by the read loop.
	in          *bufio.Reader
	frames      *amqp.FrameReader
	maxSessions int

	lastRead  atomic.Int64 // Unix nanoseconds
	lastWrite atomic.Int64

	// Guarded by mu.
	mu       sync.Mutex
	changed  sync.Cond // the output shrank, queued bytes went down, or the connection is gone
	opened   bool
	proven   sas.Rights // of the key that SASL PLAIN has proved
	peer     peer
	out      []byte
	spare    []byte
	writing  bool
	flying   int  // bytes being written
	broken   bool // writing failed
	closing  bool // close has been sent: nothing may follow
	sessions map[uint16]*session
	links    int
	linkless time.Time // when the last link went
	queued   int       // bytes of whole transfers waiting for the broker
	partial  int       // bytes of transfers of which frames are missing
	replies  replies
	byName   map[string]*outgoing
	claims   sas.Claims
}

// peer is what the other side said when it opened the connection.
type peer struct {
	container string
	maxFrame  int // bytes
	idle      time.Duration
}

func newConn(ctx context.Context, s *Server, nc net.Conn) *conn {
	c := &conn{
		srv:      s,
		nc:       nc,
		log:      s.log.With().Str("peer", nc.RemoteAddr().String()).Logger(),
		in:       bufio.NewReaderSize(nc, 32<<10),
		sessions: map[uint16]*session{},
		replies:  newReplies(),
		byName:   map[string]*outgoing{},
		linkless: time.Now(),
	}
	c.ctx, c.cancel = context.WithCancel(ctx)
	c.changed.L = &c.mu
	c.frames = amqp.NewFrameReader(c.in, s.cfg.MaxFrameBytes)
	c.touch(&c.lastRead)
	c.touch(&c.lastWrite)
	return c
}

func (c *conn) touch(at *atomic.Int64) { at.Store(time.Now().UnixNano()) }

// run serves the connection until it ends or ctx does, and returns when all its goroutines have.
func (c *conn) run(ctx context.Context) {
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		c.close(&amqp.Error{Condition: amqp.ConditionConnectionForced, Description: "The server is shutting down."})
		_ = c.nc.Close()
	})
	defer func() {
		if !stop() {
			<-stopped
		}
	}()
	err := c.handshake()
	if err == nil {
		c.log.Debug().Str("container", c.peer.container).Msg("connection opened")
		err = c.readLoop() //nolint:contextcheck // accepts end with their link, whose context hangs on the connection's
	}
	if refusal, ok := errors.AsType[*amqp.Error](err); ok {
		c.close(refusal)
		c.drain()
	}
	c.teardown()
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		c.log.Debug().Err(err).Msg("connection lost")
		return
	}
	c.log.Debug().Msg("connection closed")
}

// close sends a close (section 2.7.9), after which nothing is sent.
func (c *conn) close(reason *amqp.Error) {
	c.mu.Lock()
	c.send(0, &amqp.Close{Error: reason})
	c.closing = true
	c.mu.Unlock()
	c.settleOutput()
}

// drain reads on for a moment so that the peer gets the close before a reset (section 2.4.6).
func (c *conn) drain() {
	_ = c.nc.SetReadDeadline(time.Now().Add(time.Second))
	for {
		frame, err := c.frames.Read()
		if err != nil {
			return
		}
		if p, _, err := amqp.ReadPerformative(frame.Body); err == nil {
			if _, ok := p.(*amqp.Close); ok {
				return
			}
		}
	}
}

// teardown ends every link and waits for lanes and pumps.
func (c *conn) teardown() {
	c.cancel()
	_ = c.nc.Close()
	c.mu.Lock()
	c.broken = true
	for _, s := range c.sessions {
		s.release()
	}
	c.changed.Broadcast()
	c.mu.Unlock()
	c.wg.Wait()
}

// readLoop reads and handles frames until the connection ends. It returns an *amqp.Error when the peer is to be told.
func (c *conn) readLoop() error {
	if err := c.nc.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	for {
		if !amqp.FrameBuffered(c.in) {
			c.flush()
		}
		frame, err := c.frames.Read()
		if err != nil {
			return err
		}
		c.touch(&c.lastRead)
		if err := c.holdUp(); err != nil {
			return err
		}
		if len(frame.Body) == 0 {
			continue
		}
		if frame.Type != amqp.FrameAMQP {
			return &amqp.Error{Condition: amqp.ConditionFramingError, Description: "The frame type is not AMQP."}
		}
		p, payload, err := amqp.ReadPerformative(frame.Body)
		if err != nil {
			return &amqp.Error{Condition: amqp.ConditionDecodeError, Description: err.Error()}
		}
		if _, ok := p.(*amqp.Close); ok {
			c.close(nil)
			return io.EOF
		}
		if err := c.handle(frame.Channel, p, payload); err != nil {
			return err
		}
	}
}

// holdUp delays a frame when a fault asks for it, and pauses reading while too much waits for the broker or the peer.
func (c *conn) holdUp() error {
	if d := time.Duration(c.srv.delay.Load()); d > 0 {
		if err := wait(c.ctx, d); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.crowded() && c.ctx.Err() == nil && !c.broken {
		c.changed.Wait()
	}
	if !c.room() {
		return net.ErrClosed
	}
	return nil
}

// crowded tells that too much waits for the broker. A connection of which nothing waits is never held up by the others:
// nothing would tell it when to go on.
func (c *conn) crowded() bool {
	return c.queued > c.srv.cfg.MaxQueuedBytes || c.queued > 0 && c.srv.queued.Load() > c.srv.cfg.MaxTotalBytes
}

// queue counts bytes that wait for the broker, or no longer do.
func (c *conn) queue(bytes int) {
	c.queued += bytes
	c.srv.queued.Add(int64(bytes))
}

// hold counts bytes of incomplete transfers likewise.
func (c *conn) hold(bytes int) {
	c.partial += bytes
	c.srv.partial.Add(int64(bytes))
}

// handle changes the state by one frame.
func (c *conn) handle(channel uint16, p amqp.Performative, payload []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if begin, ok := p.(*amqp.Begin); ok {
		return c.begin(channel, begin)
	}
	s := c.sessions[channel]
	if s == nil || s.ending {
		switch p.(type) {
		case *amqp.End, *amqp.Detach:
			// The vendor's own library lets these pass, as the session may have ended
			// meanwhile (Azure/azure-amqp, AmqpConnection.OnReceiveSessionFrame). The
			// Go client ends a session twice when it gives up on cleaning up.
			return nil
		}
		return &amqp.Error{Condition: amqp.ConditionNotAllowed, Description: "The channel has no session."}
	}
	if _, ok := p.(*amqp.End); ok {
		s.end()
		return nil
	}
	if s.ended {
		// Section 2.5.6: after an end with an error the rest is discarded up to the peer's end.
		return nil
	}
	switch p := p.(type) {
	case *amqp.Attach:
		s.attach(p)
	case *amqp.Flow:
		s.flow(p)
	case *amqp.Transfer:
		s.transfer(p, payload)
	case *amqp.Disposition:
		s.disposition(p)
	case *amqp.Detach:
		s.detach(p)
	default:
		return &amqp.Error{Condition: amqp.ConditionNotAllowed, Description: "The performative is not allowed here."}
	}
	return nil
}

func (c *conn) begin(channel uint16, p *amqp.Begin) error {
	if c.sessions[channel] != nil || p.RemoteChannel.Set {
		return &amqp.Error{Condition: amqp.ConditionNotAllowed, Description: "The channel is in use."}
	}
	if int(channel) >= c.maxSessions {
		return &amqp.Error{Condition: amqp.ConditionFramingError, Description: "The channel is above channel-max."}
	}
	s := newSession(c, channel, p)
	c.sessions[channel] = s
	c.send(channel, &amqp.Begin{
		RemoteChannel:  amqp.Some(uint32(channel)),
		NextOutgoingID: s.nextOutgoing,
		IncomingWindow: s.window,
		OutgoingWindow: sessionWindow,
		HandleMax:      uint32(s.maxLinks - 1),
	})
	return nil
}
