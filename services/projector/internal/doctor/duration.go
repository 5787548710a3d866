package doctor

import (
	"regexp"
	"strconv"
	"time"
)

// Endless is a duration without an end.
const Endless = time.Duration(1<<63 - 1)

// isoDuration is an ISO 8601 duration in days, hours, minutes and seconds.
var isoDuration = regexp.MustCompile(`^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.\d+)?S)?)?$`)

// Duration reads a duration as the service writes it, such as P14D or PT10M.
// What cannot be read, or is longer than a Duration, is Endless.
func Duration(text string) time.Duration {
	parts := isoDuration.FindStringSubmatch(text)
	if parts == nil {
		return Endless
	}
	var total time.Duration
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		if parts[i+1] == "" {
			continue
		}
		n, err := strconv.ParseInt(parts[i+1], 10, 64)
		if err != nil || n > int64((Endless-total)/unit) {
			return Endless
		}
		total += time.Duration(n) * unit
	}
	return total
}
