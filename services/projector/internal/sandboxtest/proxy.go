package sandboxtest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy is a way to a server that can be cut and opened again, at one address.
type Proxy struct {
	// Addr is where the way begins, host:port.
	Addr   string
	target string

	mu       sync.Mutex
	listener net.Listener          // guarded by mu; nil while cut
	conns    map[net.Conn]struct{} // guarded by mu
	frozen   map[net.Conn]struct{} // guarded by mu: those of conns that carry nothing more
	wait     time.Duration         // guarded by mu: before a new connection carries anything
	way      time.Duration         // guarded by mu: how long what a new one carries takes, each way
	running  sync.WaitGroup
}

// NewProxy reserves an address; the way to target is cut until Open.
func NewProxy(t *testing.T, target string) *Proxy {
	t.Helper()
	p := &Proxy{Addr: free(t), target: target, conns: map[net.Conn]struct{}{}, frozen: map[net.Conn]struct{}{}}
	t.Cleanup(p.Cut)
	return p
}

// lowPort and ports are a range below the one that systems take the ports of outgoing
// connections and of listeners of port 0 from: while a way is cut, nobody is given its
// port but by another call.
const (
	lowPort = 20_000
	ports   = 12_000
)

// free returns an address that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	var err error
	for range 100 {
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", lowPort+rand.IntN(ports))); err == nil {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			return l.Addr().String()
		}
	}
	t.Fatalf("find a free address: %v", err)
	return ""
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
	wait, way := p.wait, p.way
	p.mu.Unlock()
	stop := func() { _ = from.Close(); _ = to.Close() }
	if cut {
		stop()
	}
	<-time.NewTimer(wait).C
	var both sync.WaitGroup
	both.Go(func() { defer stop(); p.copy(to, from, way) })
	both.Go(func() { defer stop(); p.copy(from, to, way) })
	both.Wait()
	p.mu.Lock()
	for _, c := range []net.Conn{from, to} {
		delete(p.conns, c)
		delete(p.frozen, c)
	}
	p.mu.Unlock()
}

// Slow has each new connection carry nothing for a while, and then take its time, each
// way, for everything.
func (p *Proxy) Slow(wait, way time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wait, p.way = wait, way
}

// copy carries one way. What comes after a freeze is swallowed, and the end of it too.
func (p *Proxy) copy(to, from net.Conn, way time.Duration) {
	if way > 0 {
		near, far := net.Pipe()
		defer func() { _ = near.Close() }()
		end := to
		p.running.Go(func() { delay(end, far, way) })
		to = near
	}
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if p.isFrozen(from) {
			if err != nil {
				return
			}
			continue
		}
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *Proxy) isFrozen(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, frozen := p.frozen[c]
	return frozen
}

// Freeze has the connections there are carry nothing more, without an end that
// either side could see. New ones work.
func (p *Proxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		p.frozen[c] = struct{}{}
	}
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

// delay carries from one to the other what comes, each piece as long after it came.
func delay(to, from net.Conn, way time.Duration) {
	type piece struct {
		bytes []byte
		due   time.Time
	}
	pieces := make(chan piece, 1<<10)
	go func() {
		defer close(pieces)
		for {
			b := make([]byte, 32<<10)
			n, err := from.Read(b)
			if err != nil {
				return
			}
			pieces <- piece{b[:n], time.Now().Add(way)}
		}
	}()
	failed := false
	for p := range pieces {
		if failed {
			continue
		}
		<-time.NewTimer(time.Until(p.due)).C
		if _, err := to.Write(p.bytes); err != nil {
			failed = true
			_ = from.Close() // who writes to it learns of it
		}
	}
}
