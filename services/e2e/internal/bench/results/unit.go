package results

import (
	"fmt"
	"math"

	"changerelay/services/e2e/internal/check/report"
)

// Unit is the unit of a figure.
type Unit string

// The units in use.
const (
	PerSecond    Unit = "per second"
	Seconds      Unit = "seconds"
	Microseconds Unit = "microseconds"
	Bytes        Unit = "bytes"
	// Ratio is how many times another figure of the same repetition.
	Ratio Unit = "ratio"
	Count Unit = "count"
)

// scale says in which part or multiple values of about a size are written, and
// its symbol.
func (u Unit) scale(size float64) (one float64, symbol string) {
	switch u {
	case PerSecond:
		return 1, "/s"
	case Seconds:
		if size < 1 {
			return 1e-3, " ms"
		}
		return 1, " s"
	case Microseconds:
		return 1, " µs"
	case Bytes:
		return 1 << 20, " MiB"
	case Ratio:
		return 1, " ×"
	case Count:
	}
	return 1, ""
}

// number writes a value without its unit; size is the value that decides how it
// is written, so that values beside each other are written alike.
func (u Unit) number(v, size float64) string {
	one, _ := u.scale(size)
	v, size = v/one, size/one
	switch {
	case u == Count || size >= 100:
		return report.Thousands(int64(math.Round(v)))
	case size >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// text writes a value with its unit.
func (u Unit) text(v float64) string {
	_, symbol := u.scale(v)
	return u.number(v, v) + symbol
}

// spread writes the middle of the values and how far they reach.
func (f Figure) spread() string {
	middle := Median(f.Values)
	text := f.Unit.text(middle)
	if len(f.Values) < 2 {
		return text
	}
	least, most := Quantile(f.Values, 0), Quantile(f.Values, 1)
	return fmt.Sprintf("%s (%s–%s)", text, f.Unit.number(least, middle), f.Unit.number(most, middle))
}
