package validate

import (
	"strings"
	"testing"
)

func TestShadow_Misapplied(t *testing.T) {
	t.Parallel()
	source := Source{"a": {1, 2, 3}}
	unseen := func(t Tally) Tally { t.Unseen = 1; return t }
	tests := []struct {
		name      string
		applied   Tally
		want      int
		sample    string
		unordered int
	}{
		{name: "in order", applied: TallyOf([]int64{1, 2, 3})},
		{name: "in another order", applied: TallyOf([]int64{1, 3, 2}), want: 1, sample: "another order"},
		{name: "another in place of one", applied: TallyOf([]int64{1, 2, 2}), want: 1, sample: "add up to 5, not 6"},
		{name: "another in place of one, unseen", applied: unseen(TallyOf([]int64{1, 2, 2})), want: 1, unordered: 1},
		{name: "another order, unseen, cannot be known", applied: unseen(TallyOf([]int64{1, 3, 2})), unordered: 1},
		{name: "too few are for Counted", applied: TallyOf([]int64{1, 2})},
		{name: "too few, unseen", applied: unseen(TallyOf([]int64{1, 2}))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := Misapplied(source, map[string]Tally{"a": tt.applied})
			if f.Count != tt.want || !strings.Contains(strings.Join(f.Samples, "\n"), tt.sample) {
				t.Errorf("got %d %q, want %d with %q", f.Count, f.Samples, tt.want, tt.sample)
			}
			if f := Unordered(source, map[string]Tally{"a": tt.applied}); f.Count != tt.unordered {
				t.Errorf("order not seen: got %d %q, want %d", f.Count, f.Samples, tt.unordered)
			}
		})
	}
}

func TestPositions_FaultsAreFound(t *testing.T) {
	t.Parallel()
	right := Position{ID: "i", Type: "T", Sequence: "1", Time: 5, Version: 1}
	want := map[string]Position{"a": right}
	if f := Misplaced(want, map[string]Position{"a": right}); f.Count != 0 {
		t.Errorf("right: got %q", f.Samples)
	}
	for _, wrong := range []Position{
		{ID: "x", Type: "T", Sequence: "1", Time: 5, Version: 1},
		{ID: "i", Type: "x", Sequence: "1", Time: 5, Version: 1},
		{ID: "i", Type: "T", Sequence: "2", Time: 5, Version: 1},
		{ID: "i", Type: "T", Sequence: "1", Time: 6, Version: 1},
		{ID: "i", Type: "T", Sequence: "1", Time: 5, Version: 2},
	} {
		if f := Misplaced(want, map[string]Position{"a": wrong}); f.Count != 1 {
			t.Errorf("%+v: got %d, want 1", wrong, f.Count)
		}
	}
	halted := right
	halted.Halted = true
	if f := Misplaced(want, map[string]Position{"a": halted}); f.Count != 0 {
		t.Errorf("a mark alone: got %q", f.Samples)
	}
	if f := Halted(map[string]Position{"a": halted, "b": right}); f.Count != 1 {
		t.Errorf("marks: got %d, want 1", f.Count)
	}
}
