// Package doctor says what is wrong with the entities that a projector works
// with, and what to do about it. It is pure: it judges facts that were read
// elsewhere, with an operator's rights.
package doctor

import (
	"fmt"
	"time"
)

// Severity tells what a finding may cost.
type Severity string

const (
	// Fault is what keeps the projector from working, or loses changes.
	Fault Severity = "fault"
	// Warning is what may do so one day, or waits for an operator.
	Warning Severity = "warning"
)

// Finding is one thing that is wrong.
type Finding struct {
	// Subject is what it is about: topic, subscription or read database.
	Subject  string   `json:"subject"`
	Severity Severity `json:"severity"`
	Problem  string   `json:"problem"`
	Fix      string   `json:"fix"`
}

// Unasked is what could not be asked for want of a right. It is no finding.
type Unasked struct {
	Subject string `json:"subject"`
	What    string `json:"what"`
	Reason  string `json:"reason"`
	// Right is what would let it be asked.
	Right string `json:"right"`
}

// Settings are those of the projector that the entities must fit.
type Settings struct {
	LockMargin   time.Duration
	RetryTime    time.Duration
	TombstoneTTL time.Duration
	// Group is that of the projectors; empty for one without a name.
	Group string
}

// findings gathers what is wrong with one subject.
type findings struct {
	subject string
	all     []Finding
}

func (f *findings) add(wrong bool, severity Severity, fix, problem string, args ...any) {
	if wrong {
		f.all = append(f.all, Finding{f.subject, severity, fmt.Sprintf(problem, args...), fix})
	}
}
