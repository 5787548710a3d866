package command

import (
	"net"

	"changerelay/services/sandbox/internal/mongodb/election"
)

const (
	// MaxWriteBatch is how many statements a command may have.
	MaxWriteBatch = 100_000
	// SessionMinutes is how long a session lasts that is not used.
	SessionMinutes = 30
)

// TopologyVersion writes which state of the replica set a reply is of.
func (s *Server) TopologyVersion(r *Reply, now election.Standing) {
	r.OpenDocument("topologyVersion")
	r.ObjectID("processId", s.Process)
	r.Int64("counter", now.Counter)
	r.Close()
}

// Port is the one that the client came to.
func (c *Call) Port() int {
	tcp, _ := c.Conn.Nc.LocalAddr().(*net.TCPAddr)
	if tcp == nil {
		return 0
	}
	return tcp.Port
}

// Address is where the client can reach the server: the address it came to, if
// the server listens on all.
func (c *Call) Address() string {
	bound := c.Server.Addr()
	if tcp, ok := bound.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return c.Conn.Nc.LocalAddr().String()
	}
	return bound.String()
}
