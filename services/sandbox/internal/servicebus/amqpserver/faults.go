package amqpserver

import (
	"strings"
	"time"

	"changerelay/services/sandbox/internal/servicebus/amqp"
)

// Faults, for tests and for users who want to see what their program makes of them.

// Cut drops every connection without a word, as a failing network does, and says how many.
func (s *Server) Cut() int {
	conns := s.connections()
	for _, c := range conns {
		if nc, ok := c.nc.(aborter); ok {
			_ = nc.Abort()
			continue
		}
		_ = c.nc.Close()
	}
	return len(conns)
}

// aborter is a connection that can end without a word.
type aborter interface{ Abort() error }

// CloseConnections closes every connection with an AMQP error, and says how many.
func (s *Server) CloseConnections(condition, description string) int {
	conns := s.connections()
	for _, c := range conns {
		c.close(&amqp.Error{Condition: condition, Description: description})
		_ = c.nc.Close()
	}
	return len(conns)
}

// Detach detaches the links to an address, whichever their direction, with an AMQP error, and says how many. Addresses
// are not case sensitive; "" means every link to an entity.
func (s *Server) Detach(address, condition, description string) int {
	n := 0
	for _, c := range s.connections() {
		n += c.detach(address, &amqp.Error{Condition: condition, Description: description})
	}
	return n
}

func (c *conn) detach(address string, reason *amqp.Error) int {
	c.mu.Lock()
	n := 0
	for _, s := range c.sessions {
		for _, l := range s.links {
			if l.state != attached || !l.matches(address) {
				continue
			}
			l.detachWith(reason)
			n++
		}
	}
	c.mu.Unlock()
	c.flush()
	return n
}

func (l *link) matches(address string) bool {
	if address == "" {
		return !strings.Contains(l.address, "$cbs") && !strings.HasSuffix(l.address, managementNode)
	}
	return strings.EqualFold(entityPath(l.address), entityPath(address))
}

// Delay holds up every frame that arrives, on all connections; 0 ends it.
func (s *Server) Delay(d time.Duration) { s.delay.Store(int64(d)) }

// Stats is a picture of the server for people.
type Stats struct {
	Connections int
	Sessions    int
	Links       int
	// QueuedBytes are transfers that wait for the broker, OutputBytes frames that wait for their peers to read.
	QueuedBytes int
	OutputBytes int
}

// Stats counts what is open.
func (s *Server) Stats() Stats {
	var out Stats
	for _, c := range s.connections() {
		c.mu.Lock()
		out.Connections++
		out.Sessions += len(c.sessions)
		out.Links += c.links
		out.QueuedBytes += c.queued
		out.OutputBytes += len(c.out) + c.flying
		c.mu.Unlock()
	}
	return out
}
