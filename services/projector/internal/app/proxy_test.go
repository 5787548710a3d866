package app_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// proxy is a way to a server that can be cut and opened again, at one address.
type proxy struct {
	target string
	addr   string

	mu       sync.Mutex
	listener net.Listener          // guarded by mu; nil while cut
	conns    map[net.Conn]struct{} // guarded by mu
	running  sync.WaitGroup
}

// newProxy reserves an address; the way is cut until open.
func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{target: target, addr: l.Addr().String(), conns: map[net.Conn]struct{}{}}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.cut)
	return p
}

func (p *proxy) open(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", p.addr)
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

func (p *proxy) carry(from net.Conn) {
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

// cut closes the address and every connection, and waits for them to be gone.
func (p *proxy) cut() {
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
