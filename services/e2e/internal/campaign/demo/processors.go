package demo

import (
	"os"
	"regexp"
	"strconv"
	"time"
)

// someWaited is the line of the kernel's pressure stall information that tells, in
// microseconds since the start, how long any task waited for a processor
// (https://docs.kernel.org/accounting/psi.html).
var someWaited = regexp.MustCompile(`(?m)^some .*\btotal=(\d+)$`)

// stall is how long tasks of this machine have waited for a processor since
// it started, where its kernel says so.
type stall struct {
	waited time.Duration
	said   bool
}

// stalledNow asks the kernel.
func stalledNow() stall {
	text, err := os.ReadFile("/proc/pressure/cpu")
	if err != nil {
		return stall{}
	}
	return parseStall(text)
}

// parseStall reads the kernel's answer.
func parseStall(text []byte) stall {
	total := someWaited.FindSubmatch(text)
	if total == nil {
		return stall{}
	}
	micros, err := strconv.ParseInt(string(total[1]), 10, 64)
	return stall{waited: time.Duration(micros) * time.Microsecond, said: err == nil}
}

// since returns how much longer it has become, but most where that is more or where
// the kernel does not say.
func (s stall) since(before stall, most time.Duration) time.Duration {
	if !s.said || !before.said {
		return most
	}
	return min(s.waited-before.waited, most)
}
