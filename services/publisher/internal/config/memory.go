package config

import (
	"cmp"
	"os"
	"runtime/debug"

	"changerelay/services/publisher/internal/settings"
)

const mib = 1 << 20

const (
	// usualWindow is what a partition has in flight where memory allows it, and
	// leastWindow where it does not.
	usualWindow, leastWindow = 32 << 20, 1 << 20
	// aside is what a publisher takes beside its windows, and eachPartition what one
	// partition does: two answers of the server as they come, with three reads of them,
	// or a chunk of a copy and the next one.
	aside, eachPartition = 32 << 20, 16 << 20
	// mostKept bounds what is kept of a stream's changes while a chunk of a resend is read.
	mostKept = 16 << 20
	// mostRead bounds what is read of the source at once, of a stream, a copy or a resend,
	// and windowShare which part of a partition's window a copy or a resend takes: more of
	// it waits, or comes beside it. Of a stream it is half of what is kept.
	mostRead, windowShare = 4 << 20, 4
	// copies is how often a change is in memory: what the SDK makes of a message comes
	// on top of it.
	copies = 2
	// usualLimit is what the process keeps to where nothing limits memory.
	usualLimit = 256 << 20
)

// inFlightBytes bounds the bytes in flight of all partitions together so that the
// process stays below a memory limit even where it leads every one of them; 0 is for
// no limit.
func (c *Config) inFlightBytes(limit int64) int64 {
	if c.MaxInFlightBytes > 0 {
		return c.MaxInFlightBytes
	}
	partitions := int64(c.Partitions)
	rest := ours(cmp.Or(limit, usualLimit)) - aside - partitions*eachPartition
	window := rest / partitions * windowShare / (copies*windowShare + 1) // what a resend keeps is part of one more
	return partitions * min(max(window, leastWindow), usualWindow)
}

// CheckMemory returns a *settings.Problem where the memory limit is too low for what so many
// partitions take at the least, which one process leads once it is the last one left, or for
// what is in flight. A single partition with the least is left to try: there is nothing to lower.
func (c *Config) CheckMemory() error { return c.checkMemory(MemoryLimit()) }

func (c *Config) checkMemory(limit int64) error {
	if limit == 0 {
		return nil
	}
	const least = eachPartition + copies*leastWindow + leastWindow/windowShare
	const tooMuch = "is %d, and %d fit in the memory limit of %d MiB (GOMEMLIMIT, or else the container's)"
	partitions := int64(c.Partitions)
	if fit := max((ours(limit)-aside)/least, 1); partitions > fit {
		return settings.Problemf("PARTITIONS", tooMuch+": allow %d MiB, or split the stream into fewer",
			partitions, fit, limit/mib, neededMiB(aside+partitions*least))
	}
	fixed := aside + partitions*eachPartition
	if fit := max((ours(limit)-fixed)*windowShare/(copies*windowShare+1), partitions*leastWindow); c.MaxInFlightBytes > fit {
		return settings.Problemf("MAX_IN_FLIGHT_BYTES", tooMuch+" beside the rest: allow %d MiB, or set 0 for what fits",
			c.MaxInFlightBytes, fit, limit/mib, neededMiB(fixed+copies*c.MaxInFlightBytes+c.MaxInFlightBytes/windowShare))
	}
	return nil
}

// neededMiB is the memory limit of which so many bytes are ours, in MiB.
func neededMiB(bytes int64) int64 { return (bytes/4*5 + mib - 1) / mib }

// ours is the part of a memory limit that the heap may take: what is not Go's needs
// the rest, and Go's own limit is a soft one.
func ours(limit int64) int64 { return limit / 5 * 4 }

// WindowBytes bounds the bytes in flight of one partition.
func (c *Config) WindowBytes() int64 { return c.MaxInFlightBytes / int64(max(c.Partitions, 1)) }

// share is how many bytes of what is read at once there may be: at most so many, and part
// of a partition's window.
func (c *Config) share(most int64) int { return int(min(most, c.WindowBytes()/windowShare)) }

// KeptBytes bounds the bytes of a partition's changes that are kept while a chunk of a
// resend is read.
func (c *Config) KeptBytes() int { return c.share(mostKept) }

// readBytes bounds what is read of a stream at once. While a chunk is read, one read is kept
// with one before it.
func (c *Config) readBytes() int { return min(mostRead, c.KeptBytes()/2) }

// PaceCollector lets the heap grow between collections, up to a limit: what is alive
// is little more than the windows, so at the usual pace a publisher under load would
// collect dozens of times a second. Who sets GOGC or GOMEMLIMIT decides instead.
func (c *Config) PaceCollector() {
	const percent = 400
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(percent)
	debug.SetMemoryLimit(c.softLimit(containerLimit()))
}

// softLimit is where the collector runs as often as it takes, in bytes of the heap. With
// one partition, aside has been measured to have room for its batch.
func (c *Config) softLimit(container int64) int64 {
	alive := aside + int64(max(c.Partitions, 1)-1)*eachPartition + copies*c.MaxInFlightBytes + c.MaxInFlightBytes/windowShare
	if container == 0 {
		return max(alive, ours(usualLimit))
	}
	return min(alive, ours(container))
}
