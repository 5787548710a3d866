package validate

import (
	"strings"
	"testing"
)

func TestHolds_Interleaved(t *testing.T) {
	t.Parallel()
	by := func(holds ...string) []Apply {
		applies := make([]Apply, len(holds))
		for i, hold := range holds {
			applies[i] = Apply{Document: "a", Version: int64(i + 1), Hold: hold}
		}
		return applies
	}
	tests := []struct {
		name      string
		applies   []Apply
		want      int
		takeovers int
		sample    string
	}{
		{name: "one hold after the other is clean", applies: by("p/1", "p/1", "q/1", "p/2", "p/2"), takeovers: 2},
		{name: "a hold that writes again after another is found", applies: by("p/1", "q/1", "p/1"), want: 1, takeovers: 2, sample: "a was written to version 3 by p/1, after q/1 had taken over"},
		{name: "each of its writes counts", applies: by("p/1", "q/1", "p/1", "q/1", "p/1"), want: 2, takeovers: 4},
		{name: "also after two others", applies: by("p/1", "q/1", "r/1", "p/1"), want: 1, takeovers: 3},
		{name: "a write that says nothing of its hold is left out", applies: append(by("p/1"), Apply{Document: "a", Version: 2}, Apply{Document: "a", Version: 3, Hold: "p/1"}), takeovers: 2},
		{name: "documents do not mix", applies: []Apply{{Document: "a", Version: 1, Hold: "p/1"}, {Document: "b", Version: 1, Hold: "q/1"}, {Document: "a", Version: 2, Hold: "p/1"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := Interleaved(tt.applies)
			if f.Count != tt.want || !strings.Contains(strings.Join(f.Samples, "\n"), tt.sample) {
				t.Errorf("interleaved: got %d %q, want %d with %q", f.Count, f.Samples, tt.want, tt.sample)
			}
			if got := Takeovers(tt.applies); got != tt.takeovers {
				t.Errorf("takeovers: got %d, want %d", got, tt.takeovers)
			}
		})
	}
}

func TestHolds_WritesThatNameNoneShowNothing(t *testing.T) {
	t.Parallel()
	bare, held := Apply{Document: "a", Version: 1}, Apply{Document: "a", Version: 2, Hold: "p/1"}
	if !NoneHeld(nil) || !NoneHeld([]Apply{bare}) || NoneHeld([]Apply{bare, held}) {
		t.Error("got writes that show what they do not, or the other way round")
	}
}
