package guard

import (
	"strings"
	"testing"
)

func TestGuard_ACutNeedsItsPlaceOnce(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, source, want, problem string
	}{
		{"there once", "a guard b", "a  b", ""},
		{"gone", "a b", "", "no longer contains"},
		{"there twice", "guard guard", "", "more than once"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Guard{File: "f.go", Cut: "guard"}.Without(tt.source)
			if got != tt.want {
				t.Errorf("source: got %q, want %q", got, tt.want)
			}
			if problem := text(err); !strings.Contains(problem, tt.problem) || (problem == "") != (tt.problem == "") {
				t.Errorf("error: got %q, want one with %q", problem, tt.problem)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
