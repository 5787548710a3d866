package report

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
)

// Report is what a run found out.
type Report struct {
	Title   string    `json:"title"`
	Passed  bool      `json:"passed"`
	Started time.Time `json:"started"`
	// Seconds is how long the whole run took, build included.
	Seconds float64  `json:"seconds"`
	Setup   []Fact   `json:"setup"`
	Figures []Figure `json:"figures"`
	Faults  []Fault  `json:"faults"`
	// Remedies are what was done about faults once there were no more of them.
	Remedies []Fault `json:"remedies,omitempty"`
	Checks   []Check `json:"checks"`
	// Aside are the events that the relay has set aside.
	Aside []Aside `json:"set_aside,omitempty"`
	Nodes []Node  `json:"processes"`
	// Dir keeps the logs of every process.
	Dir string `json:"directory"`
	// Stopped says why the run ended early; empty when it ran to its end.
	Stopped string `json:"stopped,omitempty"`
}

// Fact is a line of how the run was set up.
type Fact struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Figure is a measured number.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  Unit    `json:"unit"`
	// Note says what a reader should know of the number.
	Note string `json:"note,omitempty"`
}

// Fault is something that was done to the relay.
type Fault struct {
	// At is when, in seconds from the first write.
	At float64 `json:"at_seconds"`
	// Kind is what faults are counted by; empty where they are not.
	Kind string `json:"kind,omitempty"`
	// What was done, and Outcome is what came of it.
	What    string `json:"what"`
	Outcome string `json:"outcome"`
}

// Aside is an event that was set aside.
type Aside struct {
	// File and Line are where it comes from.
	File  string `json:"file"`
	Line  int    `json:"line"`
	Event string `json:"event"`
	// Reason is why it was set aside, and Remedy what can be done.
	Reason string `json:"reason"`
	Remedy string `json:"remedy"`
}

// Check compares a number with what it is allowed to be.
type Check struct {
	Name   string  `json:"name"`
	Got    float64 `json:"got"`
	Bound  float64 `json:"bound"`
	Unit   Unit    `json:"unit"`
	Passed bool    `json:"passed"`
	// Samples are the first faults that were found.
	Samples []string `json:"samples,omitempty"`
	// Unchecked says why the check could not be made. It does not pass then,
	// unless the check does not apply.
	Unchecked string `json:"unchecked,omitempty"`
}

// Node is what a process took of the machine.
type Node struct {
	Name          string  `json:"name"`
	ResidentBytes int64   `json:"resident_bytes"`
	CPUSeconds    float64 `json:"cpu_seconds"`
	// CPUMicrosecondsPerEvent is the processor time per event of the run.
	CPUMicrosecondsPerEvent float64 `json:"cpu_microseconds_per_event"`
}

// Unit is the unit of a number.
type Unit string

// The units in use.
const (
	Count     Unit = "count"
	PerSecond Unit = "per second"
	Seconds   Unit = "seconds"
	Bytes     Unit = "bytes"
)

// AtMost returns the check that got is no more than bound.
func AtMost(name string, got, bound float64, unit Unit, samples ...string) Check {
	return Check{Name: name, Got: got, Bound: bound, Unit: unit, Passed: got <= bound, Samples: samples}
}

// NoneOf is the check that nothing was found; it cannot pass where the search failed.
func NoneOf(name string, found []string, failed error) Check {
	if failed != nil {
		return Impossible(name, 0, Count, failed.Error())
	}
	return AtMost(name, float64(len(found)), 0, Count, found...)
}

// Impossible returns a check that could not be made, and so fails.
func Impossible(name string, bound float64, unit Unit, why string) Check {
	return Check{Name: name, Bound: bound, Unit: unit, Unchecked: why}
}

// NotApplicable returns a check for which there was no occasion, which is no failure.
func NotApplicable(name string, bound float64, unit Unit, why string) Check {
	return Check{Name: name, Bound: bound, Unit: unit, Unchecked: why, Passed: true}
}

// Judge sets Passed: the run came to its end, checks were made, and all passed.
func (r *Report) Judge() {
	r.Passed = r.Stopped == "" && len(r.Checks) > 0
	for _, c := range r.Checks {
		r.Passed = r.Passed && c.Passed
	}
}

// Publish writes the report as a page, and as JSON to the file at path unless
// that is empty.
func (r *Report) Publish(w io.Writer, path string) error {
	if _, err := fmt.Fprintln(w); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := r.WriteText(w); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if path == "" {
		return nil
	}
	return r.WriteJSON(path)
}

// WriteJSON writes the report to a file.
func (r *Report) WriteJSON(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}
