package amqpserver

import "time"

// AcceptTimeout is acceptTimeout.
var AcceptTimeout = acceptTimeout

// SweepAt does the periodic work as if it were now.
func (s *Server) SweepAt(now time.Time) {
	for _, c := range s.connections() {
		c.sweep(now)
	}
}
