package crashpoint

import (
	"io"
	"net"
	"sync"
)

// trap waits for a step on one kind of process, and goes off once.
type trap struct {
	step Step

	mu    sync.Mutex
	left  int  // guarded by mu: how often the step comes by until it goes off
	armed bool // guarded by mu
	// sprung is given the node that is to be killed.
	sprung chan string
}

func newTrap(step Step, nth int) *trap {
	return &trap{step: step, left: nth, armed: true, sprung: make(chan string, 1)}
}

// passes is told of a step that comes by; true for the one to be held.
func (t *trap) passes() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.armed {
		return false
	}
	t.left--
	t.armed = t.left > 0
	return !t.armed
}

// proxy stands between one node and one server.
type proxy struct {
	node     string
	listener net.Listener
	upstream string
	read     func(io.Reader) ([]byte, error)
	serving  sync.WaitGroup

	mu    sync.Mutex
	trap  *trap             // guarded by mu
	conns map[net.Conn]bool // guarded by mu
}

func newProxy(node, upstream string, read func(io.Reader) ([]byte, error)) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{node: node, listener: listener, upstream: upstream, read: read, conns: map[net.Conn]bool{}}
	p.serving.Go(p.serve)
	return p, nil
}

func (p *proxy) set(t *trap) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trap = t
}

func (p *proxy) current() *trap {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.trap
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.cut()
	p.serving.Wait()
}

func (p *proxy) serve() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.upstream)
		if err != nil {
			_ = near.Close()
			continue
		}
		p.mu.Lock()
		p.conns[near], p.conns[far] = true, true
		p.mu.Unlock()
		c := &connection{proxy: p, awaited: map[uint32]*trap{}}
		p.serving.Go(func() { p.pump(near, far, c.request) })
		p.serving.Go(func() { p.pump(far, near, c.answer) })
	}
}

// pump passes frames on until one is held, which ends the connection: whoever
// sent it, or waits for it, is about to be killed.
func (p *proxy) pump(from, to net.Conn, held func(frame []byte) *trap) {
	defer func() {
		_ = from.Close()
		_ = to.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, from)
		delete(p.conns, to)
	}()
	for {
		frame, err := p.read(from)
		if err != nil {
			return
		}
		if t := held(frame); t != nil {
			t.sprung <- p.node
			// Nothing more of this connection passes; it ends when it is cut.
			_, _ = io.Copy(io.Discard, from)
			return
		}
		if _, err := to.Write(frame); err != nil {
			return
		}
	}
}

// connection is what a proxy knows of one connection.
type connection struct {
	*proxy

	mu      sync.Mutex
	awaited map[uint32]*trap // guarded by mu: by request, answers to hold
	next    *trap            // guarded by mu: holds the next answer that confirms
}

// request looks at a frame from the process.
func (c *connection) request(frame []byte) *trap {
	t := c.current()
	if t == nil || t.step.request == nil || !t.step.request(frame) || !t.passes() {
		return nil
	}
	if !t.step.After {
		return t
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.step.Side == Mongo {
		c.awaited[requestID(frame)] = t
	} else {
		c.next = t
	}
	return nil
}

// answer looks at a frame from the server.
func (c *connection) answer(frame []byte) *trap {
	t := c.current()
	if t != nil && t.step.answer != nil && t.step.answer(frame) && t.passes() {
		return t
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next != nil && performative(frame) == disposition {
		return c.next
	}
	if len(c.awaited) > 0 && len(frame) >= 16 {
		return c.awaited[responseTo(frame)]
	}
	return nil
}
