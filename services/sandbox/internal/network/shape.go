package network

import (
	"net"
	"sync/atomic"
)

// Shape has the conditions of all connections of a server. The zero Shape lets everything through.
type Shape struct{ conditions atomic.Pointer[Conditions] }

// Set changes the conditions, of open connections as well.
func (s *Shape) Set(c Conditions) { s.conditions.Store(&c) }

func (s *Shape) now() Conditions {
	if c := s.conditions.Load(); c != nil {
		return *c
	}
	return Conditions{}
}

// Listener has its connections under the shape's conditions.
func (s *Shape) Listener(l net.Listener) net.Listener { return listener{l, s} }

type listener struct {
	net.Listener
	shape *Shape
}

func (l listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newConn(raw, l.shape), nil
}
