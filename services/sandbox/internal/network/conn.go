package network

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// conn is a connection under a shape's conditions. A direction is passed through until it is slow for the first time;
// from then on a goroutine, which ends with the connection, moves its bytes.
type conn struct {
	net.Conn
	shape *Shape
	born  time.Time

	in, out         *pipe
	slowIn, slowOut atomic.Bool
	startIn         sync.Once
	startOut        sync.Once
	readBy, writeBy deadline
}

func newConn(raw net.Conn, s *Shape) *conn {
	return &conn{
		Conn: raw, shape: s, born: time.Now(), in: newPipe(), out: newPipe(),
		readBy: newDeadline(), writeBy: newDeadline(),
	}
}

// closing bounds the writing of what is under way when a connection is closed.
const closing = 5 * time.Second

func (c *conn) slow() bool { return c.shape.now() != Conditions{} }

func (c *conn) Read(b []byte) (int, error) {
	if !c.slowIn.Load() {
		if !c.slow() {
			return c.Conn.Read(b)
		}
		c.startIn.Do(c.receive)
	}
	n, err := c.in.take(b, c.readBy.passed())
	return n, closed(err)
}

// receive has the read direction go through its pipe. The time to connect is charged to the first bytes.
func (c *conn) receive() {
	_ = c.Conn.SetReadDeadline(time.Time{})
	c.in.line.free = c.born.Add(c.shape.now().RoundTrip)
	c.slowIn.Store(true)
	go func() {
		buf := make([]byte, pieceBytes)
		for {
			n, err := c.Conn.Read(buf)
			if n > 0 && c.in.put(buf[:n], c.shape.now, nil) != nil {
				return
			}
			if err != nil {
				c.in.finish(err)
				return
			}
		}
	}()
}

func (c *conn) Write(b []byte) (int, error) {
	if !c.slowOut.Load() {
		if !c.slow() {
			return c.Conn.Write(b)
		}
		c.startOut.Do(c.transmit)
	}
	if err := c.out.put(b, c.shape.now, c.writeBy.passed()); err != nil {
		return 0, closed(err)
	}
	return len(b), nil
}

// transmit has the write direction go through its pipe.
func (c *conn) transmit() {
	_ = c.Conn.SetWriteDeadline(time.Time{})
	c.slowOut.Store(true)
	go func() {
		buf := make([]byte, 4*pieceBytes)
		for {
			n, err := c.out.take(buf, nil)
			if err == nil {
				_, err = c.Conn.Write(buf[:n])
			}
			if err != nil {
				c.out.finish(err)
				_ = c.Conn.Close()
				return
			}
		}
	}()
}

// Close closes at once for this side; what is under way still goes to the peer.
func (c *conn) Close() error {
	c.in.end()
	if c.slowOut.Load() {
		_ = c.Conn.SetWriteDeadline(time.Now().Add(closing))
		c.out.finish(net.ErrClosed)
		return nil
	}
	return c.Conn.Close()
}

// SetLinger says what closing does to what is under way, as it does of a TCP connection: with 0 it is dropped.
func (c *conn) SetLinger(seconds int) error {
	if seconds == 0 {
		c.out.end()
	}
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		return tcp.SetLinger(seconds)
	}
	return nil
}

func (c *conn) SetDeadline(at time.Time) error {
	return errors.Join(c.SetReadDeadline(at), c.SetWriteDeadline(at))
}

func (c *conn) SetReadDeadline(at time.Time) error {
	c.readBy.set(at)
	if c.slowIn.Load() {
		return nil
	}
	return c.Conn.SetReadDeadline(at)
}

func (c *conn) SetWriteDeadline(at time.Time) error {
	c.writeBy.set(at)
	if c.slowOut.Load() {
		return nil
	}
	return c.Conn.SetWriteDeadline(at)
}

// closed turns the end of a pipe into that of a connection.
func closed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return net.ErrClosed
	}
	return err
}
