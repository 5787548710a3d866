// Package slowlink connects so that an answer which comes slowly is waited for. Whoever
// reads sets a deadline whatever the size of the answer: over a slow link a large one
// would be cut off, however often it is asked for.
//
// The driver of MongoDB does not look any more whether a context is cancelled once its time
// is over, since the deadline of the connection ends what is read. Where that is moved, [By]
// makes a context that can be cancelled all the while.
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

// By returns a context that has a deadline, after so much time, for whoever bounds what is
// read by it, but does not end with it: it ends when ctx does.
func By(ctx context.Context, after time.Duration) context.Context {
	deadline := time.Now().Add(after)
	if earlier, bounded := ctx.Deadline(); bounded && earlier.Before(deadline) {
		deadline = earlier
	}
	return due{Context: ctx, at: deadline}
}

type due struct {
	context.Context
	at time.Time
}

// Deadline implements context.Context.
func (d due) Deadline() (time.Time, bool) { return d.at, true }
