package namespace

import (
	"regexp"
	"strconv"
	"time"
)

const (
	// usualPause is the pause where the service names none: throttling is counted
	// by the second.
	usualPause = 2 * time.Second
	// longestPause bounds what the service may ask for.
	longestPause = time.Minute
)

// advice is how the service says how long to wait:
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-throttling
var advice = regexp.MustCompile(`(?i)wait (\d{1,4}) seconds?`)

// Pause is how long the service asks to wait in an error that says that it throttles.
func Pause(err error) time.Duration {
	if found := advice.FindStringSubmatch(err.Error()); found != nil {
		if seconds, err := strconv.Atoi(found[1]); err == nil && seconds > 0 {
			return min(time.Duration(seconds)*time.Second, longestPause)
		}
	}
	return usualPause
}
