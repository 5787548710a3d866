package gateway

import "net"

// peeked is a connection whose first byte has been looked at.
type peeked struct {
	net.Conn
	raw   net.Conn // below TLS
	ahead []byte
	at    [1]byte
}

// peek waits for the first byte of a connection.
func peek(conn, raw net.Conn) (*peeked, error) {
	p := &peeked{Conn: conn, raw: raw}
	if _, err := conn.Read(p.at[:]); err != nil {
		return nil, err
	}
	p.ahead = p.at[:]
	return p, nil
}

func (p *peeked) first() byte { return p.at[0] }

// Read gives the first byte back first.
func (p *peeked) Read(b []byte) (int, error) {
	if len(p.ahead) > 0 {
		n := copy(b, p.ahead)
		p.ahead = p.ahead[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}

// Abort resets the connection, as a failing network does.
func (p *peeked) Abort() error {
	if tcp, ok := p.raw.(interface{ SetLinger(seconds int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	return p.raw.Close()
}
