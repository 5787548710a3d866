package relaytest

import (
	"context"
	"sync"
	"time"
)

// frame is how many bytes of a message go at a time.
const frame = 8 << 10

// Link carries what is sent at a bounded rate, as one connection does: the messages
// share a few links, each of which carries one at a time, and their frames take
// turns. A send that its context ends ends the connection, and all the sends over it.
type Link struct {
	// Rate is how many bytes go in a second.
	Rate int

	mu   sync.Mutex
	open *connection // nil while there is none
}

type connection struct {
	sends int // guarded by Link.mu
	links [4]chan struct{}
	wire  chan struct{}
	ended chan struct{}
}

// carry returns when size bytes are over, or why they are not.
func (l *Link) carry(ctx context.Context, size int) error {
	c, link := l.connect()
	err := c.carry(ctx, link, size, l.Rate)
	if err != nil {
		l.drop(c)
	}
	return err
}

// connect returns the connection, and which of its links is next.
func (l *Link) connect() (*connection, chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = &connection{wire: make(chan struct{}, 1), ended: make(chan struct{})}
		for i := range l.open.links {
			l.open.links[i] = make(chan struct{}, 1)
		}
	}
	l.open.sends++
	return l.open, l.open.links[l.open.sends%len(l.open.links)]
}

func (l *Link) drop(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == c {
		close(c.ended)
		l.open = nil
	}
}

func (c *connection) carry(ctx context.Context, link chan struct{}, size, rate int) error {
	if err := c.take(ctx, link); err != nil {
		return err
	}
	defer func() { <-link }()
	for ; size > 0; size -= frame {
		if err := c.write(ctx, time.Duration(min(size, frame))*time.Second/time.Duration(rate)); err != nil {
			return err
		}
	}
	return nil
}

func (c *connection) write(ctx context.Context, takes time.Duration) error {
	if err := c.take(ctx, c.wire); err != nil {
		return err
	}
	defer func() { <-c.wire }()
	timer := time.NewTimer(takes)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-c.ended:
		return ErrInjected
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take waits for its turn.
func (c *connection) take(ctx context.Context, turn chan<- struct{}) error {
	select {
	case turn <- struct{}{}:
		return nil
	case <-c.ended:
		return ErrInjected
	case <-ctx.Done():
		return ctx.Err()
	}
}
