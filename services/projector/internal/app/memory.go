package app

import (
	"math"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// headroom is how far the heap may grow over twice of what is alive. A small heap
	// would be collected all the time: for each session that is accepted the AMQP
	// client clears 80 KiB of queues, and with the official client some 600 KiB.
	headroom = 64 << 20
	// aside is what a projector takes beside messages, and eachSession what one that
	// is held does.
	aside       = 64 << 20
	eachSession = 128 << 10
	// copies is how often a message is in memory at most, as bytes of frames, decoded,
	// as a write and as what the driver sends, garbage included.
	copies = 6
	// usualBytes are in flight where nothing limits memory, and leastBytes where it is
	// little.
	usualBytes = 64 << 20
	leastBytes = 4 << 20
)

// memoryLimit is how much memory this process may take, in bytes: GOMEMLIMIT, or
// what its container has; 0 for no limit.
func memoryLimit() int64 {
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return limit
	}
	return containerLimit()
}

// containerLimit is the memory limit of the control group, 0 for none.
func containerLimit() int64 {
	limit, err := memlimit.FromCgroup()
	if err != nil || limit > math.MaxInt64 {
		return 0 // there is none, or this system has no control groups
	}
	return int64(limit)
}

// inFlightBytes bounds the bytes of messages in flight so that the process stays
// below a memory limit; 0 is none.
func (c *Config) inFlightBytes(limit int64) int64 {
	switch {
	case c.MaxInFlightBytes > 0:
		return c.MaxInFlightBytes
	case limit == 0:
		return usualBytes
	}
	return max((limit-aside-int64(c.MaxSessions)*eachSession)/copies, leastBytes)
}

// paceCollector has the collector run less often while the heap is small, and as
// often as it takes near the container's limit. Who sets GOGC or GOMEMLIMIT decides
// instead. What is returned must be kept: it is never touched, so it takes no
// memory, and counts as alive when the next collection is reckoned.
func paceCollector() []byte {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	if limit := containerLimit(); limit > 0 {
		debug.SetMemoryLimit(limit/10*9 + headroom)
	}
	return make([]byte, headroom)
}
