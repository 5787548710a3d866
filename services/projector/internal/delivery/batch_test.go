package delivery

import (
	"errors"
	"slices"
	"testing"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/session"
)

// Whatever a later stage finds stands before what an earlier one has found, and is what
// becomes of the rest.
func TestBatch_TheFirstItemThatDoesNotGoOnDecides(t *testing.T) {
	t.Parallel()
	b := versioned(1, 2, 4)
	b.fail(2, session.ErrNotYet)
	b.stop(1, poisoned, "refused")
	if b.end != 1 || b.rest != poisoned || b.err != nil {
		t.Errorf("stopped: got end %d, rest %d and %v, want the refused item to be what decides", b.end, b.rest, b.err)
	}
	b.fail(0, session.ErrRest)
	if b.end != 0 || b.rest != again || !errors.Is(b.err, session.ErrRest) {
		t.Errorf("failed: got end %d, rest %d and %v, want that all comes again", b.end, b.rest, b.err)
	}
}

func TestBatch_KnowsWhatIsStoredWithoutAGap(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		writes   []int
		outcomes []Outcome
		end      int
		stored   int
	}{
		{"nothing was tried", []int{0, 1, 1}, nil, 3, 1},
		{"all", []int{1, 0, 2}, []Outcome{Applied, Repeated, Applied}, 3, 3},
		{"all that goes on", []int{1, 0, 2}, []Outcome{Applied}, 2, 2},
		{"one between others is not", []int{1, 2, 1}, []Outcome{Applied, Applied, Unknown, Applied}, 3, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := versioned(slices.Repeat([]int64{1}, len(tt.writes))...)
			for i, count := range tt.writes {
				b.items[i].first, b.items[i].count = len(b.writes), count
				b.writes = append(b.writes, make([]projection.Write, count)...)
			}
			b.end = tt.end
			b.note(tt.outcomes)
			if got := b.stored(); got != tt.stored {
				t.Errorf("got %d, want %d", got, tt.stored)
			}
		})
	}
}
