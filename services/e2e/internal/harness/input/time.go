package input

import (
	"fmt"
	"time"
)

// layouts are the times that tables and event logs have. One that names no zone is
// taken for UTC.
var layouts = []string{
	time.RFC3339,
	"2006-01-02T15:04:05",
	"2006-01-02 15:04:05Z07:00",
	"2006-01-02 15:04:05",
	"2006/01/02 15:04:05",
	"2006-01-02 15:04",
	"2006/01/02 15:04",
	time.DateOnly,
}

// parseTime reads a time in one of the layouts, with a fraction of a second or none.
func parseTime(text string) (time.Time, error) {
	for _, layout := range layouts {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s is not a time as 2026-03-01T12:00:00+01:00 or 2026-03-01 12:00:00", brief([]byte(text)))
}
