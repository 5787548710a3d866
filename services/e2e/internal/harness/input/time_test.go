package input

import (
	"testing"
	"time"
)

func TestTime_IsReadAsDatabasesAndSpreadsheetsWriteIt(t *testing.T) {
	t.Parallel()
	want := time.Date(2026, 3, 1, 11, 30, 0, 0, time.UTC)
	for _, text := range []string{
		"2026-03-01T12:30:00+01:00", "2026-03-01T12:30:00+0100", "2026-03-01 12:30:00+01:00", "2026-03-01 12:30:00.000+01", "2026-03-01 12:30:00 +0100",
		"2026-03-01 11:30:00 UTC", "2026-03-01 11:30:00", "2026/03/01 11:30", "01.03.2026 11:30", "01.03.2026 11:30:00", "1772364600", "1772364600000",
	} {
		if got, err := parseTime(text); err != nil || !got.Equal(want) {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "noon", "1/2/2026", "03/01/2026 11:30", "20260301", "177236460", "-1772364600"} {
		if got, err := parseTime(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}
