package gateway

import (
	"net"
	"sync"
)

// door is the listener of one server behind the gateway.
type door struct {
	addr   net.Addr
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func newDoor(addr net.Addr) *door {
	d := &door{addr: addr, conns: make(chan net.Conn), closed: make(chan struct{})}
	d.close = sync.OnceFunc(func() { close(d.closed) })
	return d
}

// hand passes a connection to the server, or closes it when there is none any more.
func (d *door) hand(conn net.Conn) {
	select {
	case d.conns <- conn:
	case <-d.closed:
		_ = conn.Close()
	}
}

// Accept waits for a connection. After Close the error is net.ErrClosed.
func (d *door) Accept() (net.Conn, error) {
	select {
	case conn := <-d.conns:
		return conn, nil
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

// Close may be called more than once.
func (d *door) Close() error {
	d.close()
	return nil
}

// Addr is the gateway's first address.
func (d *door) Addr() net.Addr { return d.addr }
