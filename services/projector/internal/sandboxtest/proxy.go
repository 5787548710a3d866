package sandboxtest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Proxy is a way to a server that can be cut and opened again, at one address.
type Proxy struct {
	// Addr is where the way begins, host:port.
	Addr   string
	target string

	mu       sync.Mutex
	listener net.Listener          // guarded by mu; nil while cut
	conns    map[net.Conn]struct{} // guarded by mu
	running  sync.WaitGroup
}

// NewProxy reserves an address; the way to target is cut until Open.
func NewProxy(t *testing.T, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), target: target, conns: map[net.Conn]struct{}{}}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Cut)
	return p
}

// Open lets connections through.
func (p *Proxy) Open(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", p.Addr)
	if err != nil {
		t.Fatalf("open the way again: %v", err)
	}
	p.mu.Lock()
	p.listener = l
	p.mu.Unlock()
	p.running.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.carry(from) })
		}
	})
}

func (p *Proxy) carry(from net.Conn) {
	to, err := net.Dial("tcp", p.target)
	if err != nil {
		_ = from.Close()
		return
	}
	p.mu.Lock()
	cut := p.listener == nil
	p.conns[from], p.conns[to] = struct{}{}, struct{}{}
	p.mu.Unlock()
	stop := func() { _ = from.Close(); _ = to.Close() }
	if cut {
		stop()
	}
	var both sync.WaitGroup
	both.Go(func() { defer stop(); _, _ = io.Copy(to, from) })
	both.Go(func() { defer stop(); _, _ = io.Copy(from, to) })
	both.Wait()
	p.mu.Lock()
	delete(p.conns, from)
	delete(p.conns, to)
	p.mu.Unlock()
}

// Cut closes the address and every connection, and waits for them to be gone.
func (p *Proxy) Cut() {
	p.mu.Lock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}
