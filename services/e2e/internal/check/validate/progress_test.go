package validate

import (
	"strings"
	"testing"
)

func TestProgress_Regressions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		applies []Apply
		want    int
		sample  string
	}{
		{name: "rising versions are clean", applies: []Apply{{Document: "a", Version: 1}, {Document: "b", Version: 1}, {Document: "a", Version: 2}, {Document: "a", Version: 7}}},
		{name: "a version that goes back is found", applies: []Apply{{Document: "a", Version: 3}, {Document: "a", Version: 2}}, want: 1, sample: "a went from version 3 to 2"},
		{name: "a version written twice is found", applies: []Apply{{Document: "a", Version: 3}, {Document: "a", Version: 3}}, want: 1},
		{name: "the way back up is no second fault", applies: []Apply{{Document: "a", Version: 3}, {Document: "a", Version: 2}, {Document: "a", Version: 4}}, want: 1},
		{name: "documents do not mix", applies: []Apply{{Document: "a", Version: 3}, {Document: "b", Version: 2}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := Regressions(tt.applies)
			if f.Count != tt.want || !strings.Contains(strings.Join(f.Samples, "\n"), tt.sample) {
				t.Errorf("regressions: got %d %q, want %d with %q", f.Count, f.Samples, tt.want, tt.sample)
			}
		})
	}
}

func TestProgress_CheckpointRegressions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		history []Checkpoint
		want    int
		sample  string
	}{
		{name: "a checkpoint that moves on is clean", history: []Checkpoint{{Stream: "s", Term: 1, Position: "a"}, {Stream: "s", Term: 1, Position: "b"}, {Stream: "s", Term: 2, Position: "b"}, {Stream: "s", Term: 2, Position: "c"}}},
		{name: "a position that goes back is found", history: []Checkpoint{{Stream: "s", Term: 1, Position: "b"}, {Stream: "s", Term: 2, Position: "a"}}, want: 1, sample: "from position b to a in term 2"},
		{name: "a write of an old term is found", history: []Checkpoint{{Stream: "s", Term: 2, Position: "b"}, {Stream: "s", Term: 1, Position: "c"}}, want: 1, sample: "from term 2 to 1"},
		{name: "streams do not mix", history: []Checkpoint{{Stream: "s", Term: 2, Position: "b"}, {Stream: "r", Term: 1, Position: "a"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := CheckpointRegressions(tt.history)
			if f.Count != tt.want || !strings.Contains(strings.Join(f.Samples, "\n"), tt.sample) {
				t.Errorf("regressions: got %d %q, want %d with %q", f.Count, f.Samples, tt.want, tt.sample)
			}
		})
	}
}

func TestProgress_Differences(t *testing.T) {
	t.Parallel()
	type docs = map[string]map[string]any
	tests := []struct {
		name      string
		want, got docs
		count     int
		sample    string
	}{
		{name: "equal documents are clean", want: docs{"a": {"n": int64(1), "l": []any{"x"}}}, got: docs{"a": {"n": int64(1), "l": []any{"x"}}}},
		{name: "a missing document is found", want: docs{"a": {}}, got: docs{}, count: 1, sample: "a is missing"},
		{name: "a document too many is found", want: docs{}, got: docs{"a": {}}, count: 1, sample: "a should not be there"},
		{name: "another value is found", want: docs{"a": {"n": int64(1)}}, got: docs{"a": {"n": int64(2)}}, count: 1, sample: "a: n is 2 (want 1)"},
		{name: "another type of value is found", want: docs{"a": {"n": int64(1)}}, got: docs{"a": {"n": "1"}}, count: 1},
		{name: "a missing field is found", want: docs{"a": {"n": int64(1)}}, got: docs{"a": {}}, count: 1, sample: "n is missing (want 1)"},
		{name: "a field too many is found", want: docs{"a": {}}, got: docs{"a": {"n": int64(1)}}, count: 1, sample: "n is 1 (want none)"},
		{name: "an array in another order is found", want: docs{"a": {"l": []any{"x", "y"}}}, got: docs{"a": {"l": []any{"y", "x"}}}, count: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := Differences(tt.want, tt.got)
			if f.Count != tt.count || !strings.Contains(strings.Join(f.Samples, "\n"), tt.sample) {
				t.Errorf("differences: got %d %q, want %d with %q", f.Count, f.Samples, tt.count, tt.sample)
			}
		})
	}
}
