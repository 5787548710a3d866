package mongoserver

import (
	"bufio"
	"crypto/tls"
	"net"
)

// recordHeader begins a TLS connection: a handshake record of version 3 (RFC
// 8446, section 5.1). Read as the length of a message of the wire protocol it
// would be one that no client begins with.
const recordHeader = "\x16\x03"

// secure looks at how a connection begins, and makes it a TLS connection where
// that is a handshake: one address serves both, as with tlsMode preferTLS.
func (c *conn) secure(in *bufio.Reader) (*bufio.Reader, error) {
	if c.server.tls == nil {
		return in, nil
	}
	first, err := in.Peek(len(recordHeader))
	if err != nil {
		return nil, err
	}
	if string(first) != recordHeader {
		return in, nil
	}
	c.nc = tls.Server(&bufferedConn{Conn: c.nc, in: in}, c.server.tls)
	return bufio.NewReaderSize(c.nc, bufferBytes), nil
}

// bufferedConn reads through what has been looked at.
type bufferedConn struct {
	net.Conn
	in *bufio.Reader
}

func (c *bufferedConn) Read(p []byte) (int, error) { return c.in.Read(p) }
