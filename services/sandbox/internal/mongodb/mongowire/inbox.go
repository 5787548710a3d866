package mongowire

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Inbox bounds the memory that the messages of all connections take, from
// their first byte until they are released. Small messages are not counted: a
// connection has one of them at a time.
type Inbox struct {
	mu   sync.Mutex
	left int
	// freed is closed, and made anew, when there is more room.
	freed chan struct{}
	// timeout is how long a message waits for room before its connection is
	// given up.
	timeout time.Duration
}

// NewInbox makes one for so many bytes, which must be no less than the largest
// message has.
func NewInbox(bytes int, timeout time.Duration) *Inbox {
	return &Inbox{left: bytes, freed: make(chan struct{}), timeout: timeout}
}

// claim waits for room.
func (b *Inbox) claim(ctx context.Context, bytes int) error {
	timer := time.NewTimer(b.timeout)
	defer timer.Stop()
	for {
		b.mu.Lock()
		if b.left >= bytes {
			b.left -= bytes
			b.mu.Unlock()
			return nil
		}
		freed := b.freed
		b.mu.Unlock()
		select {
		case <-freed:
		case <-timer.C:
			return fmt.Errorf("no room for a message of %d bytes beside those of other connections within %s", bytes, b.timeout)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (b *Inbox) release(bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += bytes
	close(b.freed)
	b.freed = make(chan struct{})
}

// claims are what one message has of an inbox. The zero claims have nothing
// and count nothing.
type claims struct {
	inbox *Inbox
	bytes int
}

// take claims bytes, once.
func (c *claims) take(ctx context.Context, bytes int) error {
	if c.inbox == nil || c.bytes > 0 {
		return nil
	}
	if err := c.inbox.claim(ctx, bytes); err != nil {
		return err
	}
	c.bytes = bytes
	return nil
}

func (c *claims) give() {
	if c.bytes > 0 {
		c.inbox.release(c.bytes)
		c.bytes = 0
	}
}
