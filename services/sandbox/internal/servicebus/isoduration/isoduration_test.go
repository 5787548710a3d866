package isoduration_test

import (
	"testing"
	"time"

	"changerelay/services/sandbox/internal/servicebus/isoduration"
)

func TestISODuration_ParseAndFormat(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"PT1M":                       time.Minute,
		"PT30S":                      30 * time.Second,
		"PT0S":                       0,
		"PT0.5S":                     500 * time.Millisecond,
		"P1D":                        24 * time.Hour,
		"P14DT1H2M3.004S":            14*24*time.Hour + time.Hour + 2*time.Minute + 3004*time.Millisecond,
		"P10675199DT2H48M5.4775807S": isoduration.Forever,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			got, err := isoduration.Parse(text)
			if err != nil || got != want {
				t.Errorf("Parse: got %v, %v, want %v", got, err, want)
			}
			if got := isoduration.Format(want); got != text {
				t.Errorf("Format: got %s, want %s", got, text)
			}
		})
	}
}

func TestISODuration_ParseReadsOtherForms(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"P1W":     7 * 24 * time.Hour,
		"PT90M":   90 * time.Minute,
		"PT3600S": time.Hour,
		"P99999D": 99999 * 24 * time.Hour,
	} {
		if got, err := isoduration.Parse(text); err != nil || got != want {
			t.Errorf("Parse(%q): got %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestISODuration_ParseRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "P", "PT", "1M", "PT1", "P1M", "P1Y", "-PT1M", "PT-1M", "PT1M1H", "PT1S1S", "PT1..5S", "P1DT", "pt1m", "PT1D"} {
		if got, err := isoduration.Parse(text); err == nil {
			t.Errorf("Parse(%q): got %v, want an error", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("P1DT2H3M4.5S")
	f.Add("P10675199DT2H48M5.4775807S")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := isoduration.Parse(text)
		if err != nil {
			return
		}
		again, err := isoduration.Parse(isoduration.Format(d))
		if err != nil || (again-d).Abs() > time.Microsecond {
			t.Fatalf("Parse(Format(%v)): got %v, %v", d, again, err)
		}
	})
}
