// Package slowlink connects so that an answer which comes slowly is waited for. Whoever
// reads sets a deadline whatever the size of the answer: over a slow link a large one
// would be cut off, however often it is asked for.
package slowlink

import (
	"context"
	"net"
	"time"
)

const (
	// progress is how many bytes must come for a deadline to be moved, and patience how
	// far from then on: at least 4 KiB a second.
	progress = 64 << 10
	patience = 15 * time.Second
)

// Dialer opens connections whose read deadlines are moved for as long as bytes come.
type Dialer struct{ net.Dialer }

// DialContext implements options.ContextDialer.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	connection, err := d.Dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: connection}, nil
}

// conn is for one reader, who sets the deadlines, too.
type conn struct {
	net.Conn
	deadline time.Time // for reading; zero is none
	came     int       // bytes, since the deadline was set or moved
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	c.deadline, c.came = t, 0
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.deadline, c.came = t, 0
	return c.Conn.SetReadDeadline(t)
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.came += n; c.deadline.IsZero() || c.came < progress {
		return n, err
	}
	c.came = 0
	if later := time.Now().Add(patience); err == nil && later.After(c.deadline) {
		c.deadline = later
		err = c.Conn.SetReadDeadline(later)
	}
	return n, err
}
