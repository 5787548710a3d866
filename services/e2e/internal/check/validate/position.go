package validate

import (
	"maps"
	"slices"
)

// Position is the event that a read document has come to.
type Position struct {
	ID, Type, Sequence string
	// Time is in milliseconds of the Unix epoch.
	Time    int64
	Version int64
	// Halted says that the document is marked as halted.
	Halted bool
}

// Misplaced finds documents that say they have come to another event than they
// should have. Those that are not there are Differences' to find.
func Misplaced(want, got map[string]Position) Findings {
	var f Findings
	for _, id := range slices.Sorted(maps.Keys(got)) {
		have := got[id]
		have.Halted = false
		if have != want[id] {
			f.Add("%s says %+v, not %+v", id, have, want[id])
		}
	}
	return f
}

// Halted finds documents that are marked as halted.
func Halted(got map[string]Position) Findings {
	var f Findings
	for _, id := range slices.Sorted(maps.Keys(got)) {
		if got[id].Halted {
			f.Add("%s is marked as halted", id)
		}
	}
	return f
}
