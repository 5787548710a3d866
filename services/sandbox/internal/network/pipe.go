package network

import (
	"os"
	"sync"
	"time"
)

const (
	// pipeBytes may be under way in one direction; it is what a socket's buffers may grow to.
	pipeBytes = 4 << 20
	// pieceBytes is what is delayed as one.
	pieceBytes = 16 << 10
)

// pipe is one direction of a connection: a queue whose pieces come out when they are due.
type pipe struct {
	mu      sync.Mutex
	line    line
	pieces  []piece
	held    int           // bytes in pieces
	changed chan struct{} // closed, and replaced, at each change
	err     error         // follows the last piece
	ended   bool          // nothing is taken in or given out any more
}

type piece struct {
	data []byte
	due  time.Time
}

func newPipe() *pipe { return &pipe{changed: make(chan struct{})} }

// broadcast wakes whoever waits. It needs mu.
func (p *pipe) broadcast() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// put takes in a copy of b. It waits for room until the deadline's channel is closed.
func (p *pipe) put(b []byte, c func() Conditions, late <-chan struct{}) error {
	for len(b) > 0 {
		p.mu.Lock()
		switch {
		case p.ended:
			p.mu.Unlock()
			return os.ErrClosed
		case p.err != nil:
			defer p.mu.Unlock()
			return p.err
		case p.held >= pipeBytes:
			changed := p.changed
			p.mu.Unlock()
			select {
			case <-changed:
			case <-late:
				return os.ErrDeadlineExceeded
			}
			continue
		}
		n := min(len(b), pieceBytes)
		p.pieces = append(p.pieces, piece{data: append([]byte(nil), b[:n]...), due: p.line.send(time.Now(), n, c())})
		p.held += n
		p.broadcast()
		p.mu.Unlock()
		b = b[n:]
	}
	return nil
}

// finish has err follow what is under way.
func (p *pipe) finish(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
		p.broadcast()
	}
}

// end drops what is under way.
func (p *pipe) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.ended, p.pieces, p.held = true, nil, 0
		p.broadcast()
	}
}

// take copies what has arrived into b. It waits for the first byte until the deadline's channel is closed.
func (p *pipe) take(b []byte, late <-chan struct{}) (int, error) {
	for {
		p.mu.Lock()
		changed := p.changed
		var wait time.Duration
		switch {
		case p.ended:
			p.mu.Unlock()
			return 0, os.ErrClosed
		case len(p.pieces) > 0:
			if wait = time.Until(p.pieces[0].due); wait <= 0 {
				n := p.arrived(b)
				p.mu.Unlock()
				return n, nil
			}
		case p.err != nil:
			defer p.mu.Unlock()
			return 0, p.err
		}
		p.mu.Unlock()
		if err := await(changed, late, wait); err != nil {
			return 0, err
		}
	}
}

// await waits for a change, or for a time where there is one.
func await(changed, late <-chan struct{}, wait time.Duration) error {
	var due <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
	case <-changed:
	case <-late:
		return os.ErrDeadlineExceeded
	}
	return nil
}

// arrived copies all pieces that are due. It needs mu.
func (p *pipe) arrived(b []byte) int {
	now, n := time.Now(), 0
	for len(p.pieces) > 0 && n < len(b) && !p.pieces[0].due.After(now) {
		first := &p.pieces[0]
		k := copy(b[n:], first.data)
		n += k
		if first.data = first.data[k:]; len(first.data) > 0 {
			break
		}
		p.pieces[0] = piece{}
		p.pieces = p.pieces[1:]
	}
	p.held -= n
	p.broadcast()
	return n
}
