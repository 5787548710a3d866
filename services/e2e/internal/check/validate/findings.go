package validate

import (
	"fmt"
	"slices"
)

// samplesKept bounds what is written down of each kind of fault: the first few
// are enough to start looking, and a broken run has millions.
const samplesKept = 5

// Findings are the faults of one kind in a history. The zero value is none.
type Findings struct {
	Count   int      `json:"count"`
	Samples []string `json:"samples,omitempty"`
}

// Add notes one fault.
func (f *Findings) Add(format string, args ...any) {
	f.Count++
	if len(f.Samples) < samplesKept {
		f.Samples = append(f.Samples, fmt.Sprintf(format, args...))
	}
}

// addMany adds n faults that share a sample; none where n is not above 0.
func (f *Findings) addMany(n int64, format string, args ...any) {
	if n <= 0 {
		return
	}
	f.Add(format, args...)
	f.Count += int(n) - 1
}

// And returns these findings and others of their kind.
func (f Findings) And(others Findings) Findings {
	samples := slices.Concat(f.Samples, others.Samples)
	return Findings{Count: f.Count + others.Count, Samples: samples[:min(len(samples), samplesKept)]}
}
