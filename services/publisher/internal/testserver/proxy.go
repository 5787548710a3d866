package testserver

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy passes connections on to a server until it is cut.
type Proxy struct {
	listener net.Listener
	serving  sync.WaitGroup

	mu     sync.Mutex
	target string            // guarded by mu: where later connections lead
	cut    bool              // guarded by mu
	canned []byte            // guarded by mu: what later connections are answered with
	conns  map[net.Conn]bool // guarded by mu; whether what comes from there is passed on
	passed int               // guarded by mu: connections let through so far
	rate   int               // guarded by mu: bytes a second of a connection, each way; 0 is no bound
}

// NewProxy returns a proxy to target, host:port, that ends with the test.
func NewProxy(t *testing.T, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, target: target, conns: map[net.Conn]bool{}}
	p.serving.Go(p.serve)
	t.Cleanup(func() {
		_ = listener.Close()
		p.Cut()
		p.serving.Wait()
	})
	return p
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Connections is how many connections were let through so far.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passed
}

// Cut ends all connections, and every later one at once.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for conn := range p.conns {
		_ = conn.Close()
	}
}

// Swallow leaves the connections there are open, and passes nothing on from them
// any more, as a network does that has forgotten them. Later ones are let through.
func (p *Proxy) Swallow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		p.conns[conn] = false
	}
}

// Answer gives later connections an answer of its own, and closes them when the
// other side has closed.
func (p *Proxy) Answer(answer []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.canned = answer
}

// Lead ends all connections, and has later ones lead to another target.
func (p *Proxy) Lead(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
	for conn := range p.conns {
		_ = conn.Close()
	}
}

// Mend lets connections through again.
func (p *Proxy) Mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut, p.canned = false, nil
}

// Narrow has each connection pass on so many bytes a second from now on, each way.
func (p *Proxy) Narrow(rate int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate = rate
}

func (p *Proxy) serve() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		if canned := p.answer(near); canned != nil {
			p.serving.Go(func() { p.say(near, canned) })
			continue
		}
		far, err := net.Dial("tcp", p.leads())
		if err != nil || !p.add(near, far) {
			_ = near.Close()
			if far != nil {
				_ = far.Close()
			}
			continue
		}
		p.serving.Go(func() { p.pass(near, far) })
		p.serving.Go(func() { p.pass(far, near) })
	}
}

func (p *Proxy) leads() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.target
}

// answer returns what a connection is to be answered with, nil for nothing.
func (p *Proxy) answer(near net.Conn) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.canned != nil {
		p.conns[near] = true
	}
	return p.canned
}

func (p *Proxy) say(near net.Conn, answer []byte) {
	if _, err := near.Write(answer); err == nil {
		_, _ = io.Copy(io.Discard, near) // an end of the connection is an end
	}
	_ = near.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, near)
}

func (p *Proxy) add(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut {
		return false
	}
	for _, conn := range conns {
		p.conns[conn] = true
	}
	p.passed++
	return true
}

// pass copies one direction, and ends both when it ends.
func (p *Proxy) pass(to, from net.Conn) {
	_, _ = io.Copy(valve{p, from, to}, from) // an end of the connection is an end
	_ = to.Close()
	_ = from.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, to)
	delete(p.conns, from)
}

// valve writes to one end what comes from the other.
type valve struct {
	*Proxy
	from, to net.Conn
}

func (v valve) Write(b []byte) (int, error) {
	v.mu.Lock()
	flows, rate := v.conns[v.from], v.rate
	v.mu.Unlock()
	if !flows {
		return len(b), nil
	}
	if rate > 0 {
		<-time.NewTimer(time.Duration(len(b)) * time.Second / time.Duration(rate)).C
	}
	return v.to.Write(b)
}
