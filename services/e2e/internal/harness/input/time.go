package input

import (
	"fmt"
	"strconv"
	"time"
)

// layouts are the times that tables and event logs have. One that names no zone is
// taken for UTC.
var layouts = []string{
	time.RFC3339,
	"2006-01-02T15:04:05",
	"2006-01-02 15:04:05Z07:00",
	"2006-01-02T15:04:05Z0700",
	"2006-01-02 15:04:05Z0700",
	"2006-01-02 15:04:05Z07", // of PostgreSQL
	"2006-01-02 15:04:05 UTC",
	"2006-01-02 15:04:05 Z0700",
	"2006-01-02 15:04:05",
	"2006/01/02 15:04:05",
	"2006-01-02 15:04",
	"2006/01/02 15:04",
	time.DateOnly,
	"02.01.2006 15:04:05",
	"02.01.2006 15:04",
	"02.01.2006",
}

// Digits alone are a time since 1970: of seconds, or of milliseconds.
const (
	secondsLong      = 10
	millisecondsLong = 13
)

// parseTime reads a time in one of the layouts, with a fraction of a second or none.
func parseTime(text string) (time.Time, error) {
	for _, layout := range layouts {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
		switch len(text) {
		case secondsLong:
			return time.Unix(n, 0), nil
		case millisecondsLong:
			return time.UnixMilli(n), nil
		}
	}
	return time.Time{}, fmt.Errorf("%s is not a time as 2026-03-01T12:00:00+01:00 or 2026-03-01 12:00:00", brief([]byte(text)))
}
