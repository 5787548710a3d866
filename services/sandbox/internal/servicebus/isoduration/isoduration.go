// Package isoduration reads and writes durations as the Service Bus
// administration does: ISO 8601 durations of days, hours, minutes and seconds,
// where the longest one stands for "no end".
package isoduration

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Forever is any duration that does not fit; it is written as longest.
const Forever = time.Duration(math.MaxInt64)

// longest is the service's TimeSpan.MaxValue.
const longest = "P10675199DT2H48M5.4775807S"

// units that may follow P and T, in their order, with the seconds in each.
var (
	dateUnits = []unit{{'W', 7 * 24 * 3600}, {'D', 24 * 3600}}
	timeUnits = []unit{{'H', 3600}, {'M', 60}, {'S', 1}}
)

type unit struct {
	letter  byte
	seconds float64
}

// Parse reads a duration such as PT1M or P1DT2H3.5S. Years and months, which
// have no fixed length, and signs are refused.
func Parse(s string) (time.Duration, error) {
	rest, ok := strings.CutPrefix(s, "P")
	if !ok || rest == "" {
		return 0, fmt.Errorf("%q is not an ISO 8601 duration such as PT1M", s)
	}
	date, clock, hasClock := strings.Cut(rest, "T")
	days, err := sum(date, dateUnits)
	if err != nil || hasClock && clock == "" {
		return 0, fmt.Errorf("%q is not an ISO 8601 duration such as PT1M", s)
	}
	seconds, err := sum(clock, timeUnits)
	if err != nil {
		return 0, fmt.Errorf("%q is not an ISO 8601 duration such as PT1M", s)
	}
	total := days + seconds
	if total >= float64(math.MaxInt64)/float64(time.Second) {
		return Forever, nil
	}
	whole, fraction := math.Modf(total)
	return time.Duration(whole)*time.Second + time.Duration(math.Round(fraction*1e9)), nil
}

// sum reads numbers with units in order, each at most once.
func sum(s string, units []unit) (float64, error) {
	total := 0.0
	for s != "" {
		n := strings.IndexFunc(s, func(c rune) bool { return (c < '0' || c > '9') && c != '.' })
		if n <= 0 {
			return 0, strconv.ErrSyntax
		}
		v, err := strconv.ParseFloat(s[:n], 64)
		if err != nil {
			return 0, err
		}
		for len(units) > 0 && units[0].letter != s[n] {
			units = units[1:]
		}
		if len(units) == 0 {
			return 0, strconv.ErrSyntax
		}
		total += v * units[0].seconds
		units = units[1:]
		s = s[n+1:]
	}
	return total, nil
}

// Format writes a duration that is not negative.
func Format(d time.Duration) string {
	if d == Forever {
		return longest
	}
	if d == 0 {
		return "PT0S"
	}
	var b strings.Builder
	b.WriteByte('P')
	if days := d / (24 * time.Hour); days > 0 {
		fmt.Fprintf(&b, "%dD", days)
		d %= 24 * time.Hour
	}
	if d == 0 {
		return b.String()
	}
	b.WriteByte('T')
	if hours := d / time.Hour; hours > 0 {
		fmt.Fprintf(&b, "%dH", hours)
		d %= time.Hour
	}
	if minutes := d / time.Minute; minutes > 0 {
		fmt.Fprintf(&b, "%dM", minutes)
		d %= time.Minute
	}
	if d > 0 {
		b.WriteString(strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "S")
	}
	return b.String()
}
