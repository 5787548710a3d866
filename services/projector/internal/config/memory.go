package config

import (
	"cmp"
	"os"
	"runtime/debug"
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
	// usualLimit is what the process keeps to where nothing limits memory, and
	// leastBytes are in flight where it is little.
	usualLimit = 256 << 20
	leastBytes = 4 << 20
)

// inFlightBytes bounds the bytes of messages in flight so that the process stays
// below a memory limit; 0 is for none.
func (c *Config) inFlightBytes(limit int64) int64 {
	if c.MaxInFlightBytes > 0 {
		return c.MaxInFlightBytes
	}
	return max((cmp.Or(limit, usualLimit)-c.beside())/copies, leastBytes)
}

// beside is what the process takes beside messages.
func (c *Config) beside() int64 { return aside + int64(c.MaxSessions)*eachSession }

// Shares are the parts of the bytes in flight: of messages from the broker, and of
// parked ones that are redriven while the sessions' own are in hand.
func (c *Config) Shares(limit int64) (messages, parked int64) {
	all := c.inFlightBytes(limit)
	if c.OnGap != GapWait {
		return all, 0 // the process redrives nothing
	}
	return all - all/8, all / 8
}

// PaceCollector has the collector run less often while the heap is small, and as
// often as it takes near the container's limit, or near what the process is to take
// at most where there is none. Who sets GOGC or GOMEMLIMIT decides instead. What is
// returned must be kept: it is never touched, so it takes no memory, and counts as
// alive when the next collection is scheduled. It comes after the bytes in flight are
// computed, since memoryLimit would take its limit for one that was set.
func (c *Config) PaceCollector() []byte {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	debug.SetMemoryLimit(c.softLimit(containerLimit()))
	return make([]byte, headroom)
}

// softLimit is where the collector runs as often as it takes, in bytes of the heap
// with what paceCollector returns.
func (c *Config) softLimit(container int64) int64 {
	return cmp.Or(container, c.beside()+copies*c.inFlightBytes(0))/10*9 + headroom
}
