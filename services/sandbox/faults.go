package sandbox

import (
	"encoding/json"
	"fmt"
)

// Fault is a fault that was started.
type Fault struct {
	// ID names a fault that lasts, for EndFault; 0: it is over.
	ID int
	// Affected counts what it hit at once: connections, links, sessions.
	Affected int
}

// StartFault does what POST /faults does with a body: a value that JSON writes
// as one, such as
//
//	s.StartFault(map[string]any{"kind": "servicebus.throttle", "path": "changes", "for": "10s"})
//
// GET /faults lists the kinds with examples. Every error is one of the body.
func (s *Sandbox) StartFault(body any) (Fault, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return Fault{}, fmt.Errorf("write the fault: %w", err)
	}
	report, err := s.faults.Start(text)
	return Fault{ID: report.ID, Affected: report.Affected}, err
}

// EndFault ends a fault that lasts, and says whether there was one.
func (s *Sandbox) EndFault(id int) bool { return s.faults.End(id) }

// EndFaults ends all faults that last, and says how many.
func (s *Sandbox) EndFaults() int { return s.faults.EndAll() }
