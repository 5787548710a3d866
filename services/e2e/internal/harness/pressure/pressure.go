// Package pressure asks the kernel how long work has waited for this machine's processors,
// so that a bound that is for a machine with processors to spare can grow on another one.
package pressure

import (
	"context"
	"os"
	"regexp"
	"strconv"
	"time"
)

// someWaited is the line of the kernel's pressure stall information that tells, in
// microseconds since the start, how long any task waited for a processor
// (https://docs.kernel.org/accounting/psi.html).
var someWaited = regexp.MustCompile(`(?m)^some .*\btotal=(\d+)$`)

// Stall is how long tasks of this machine have waited for a processor since
// it started, where its kernel says so.
type Stall struct {
	waited time.Duration
	said   bool
}

// Now asks the kernel.
func Now() Stall {
	text, err := os.ReadFile("/proc/pressure/cpu")
	if err != nil {
		return Stall{}
	}
	return parse(text)
}

// parse reads the kernel's answer.
func parse(text []byte) Stall {
	total := someWaited.FindSubmatch(text)
	if total == nil {
		return Stall{}
	}
	micros, err := strconv.ParseInt(string(total[1]), 10, 64)
	return Stall{waited: time.Duration(micros) * time.Microsecond, said: err == nil}
}

// Since returns how much longer it has become, but most where that is more or where
// the kernel does not say.
func (s Stall) Since(before Stall, most time.Duration) time.Duration {
	if !s.said || !before.said {
		return most
	}
	return min(s.waited-before.waited, most)
}

// look is how often it is looked how long work has waited.
const look = time.Second

// WithTimeout is a context that ends after a timeout on a machine with processors to spare,
// and on another one later by what work has waited for one until then, but most.
func WithTimeout(parent context.Context, timeout, most time.Duration) (context.Context, context.CancelFunc) {
	began, before := time.Now(), Now()
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		tick := time.NewTicker(look)
		defer tick.Stop()
		for time.Since(began) < timeout+Now().Since(before, most) {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
		cancel(context.DeadlineExceeded)
	}()
	return ctx, func() { cancel(nil) }
}
