package relay

import (
	"sync/atomic"
	"time"

	"changerelay/pkg/contract"
)

// Counters count over all terms of a process. They may be read at any time.
type Counters struct {
	read, passed, parked, sent, sends, resent, unresent atomic.Int64

	failed       [classes]atomic.Int64
	checkpointAt atomic.Pointer[time.Time]
	latency      Observer
}

// Observer takes observations: a histogram.
type Observer interface{ Observe(value float64) }

// NewCounters returns counters at zero that pass on each send's seconds.
func NewCounters(latency Observer) *Counters { return &Counters{latency: latency} }

// Read is how many changes were read from the stream.
func (c *Counters) Read() int64 { return c.read.Load() }

// Passed is how many changes carried no event, by the mapper's rule.
func (c *Counters) Passed() int64 { return c.passed.Load() }

// Parked is how many changes were parked.
func (c *Counters) Parked() int64 { return c.parked.Load() }

// Sent is how many messages the topic accepted.
func (c *Counters) Sent() int64 { return c.sent.Load() }

// Resent is how many of them were sent again, for a resend.
func (c *Counters) Resent() int64 { return c.resent.Load() }

// Unresent is how many changes were to be sent again and cannot be.
func (c *Counters) Unresent() int64 { return c.unresent.Load() }

// Sends is how many sends were made, whatever became of them.
func (c *Counters) Sends() int64 { return c.sends.Load() }

// Retries is how many sends failed and were made again.
func (c *Counters) Retries() int64 {
	sum := int64(0)
	for _, class := range Classes() {
		if class != TooLarge {
			sum += c.Failed(class)
		}
	}
	return sum
}

// Failed is how many sends failed with a class.
func (c *Counters) Failed(class Class) int64 { return c.failed[class].Load() }

func (c *Counters) fail(class Class) { c.failed[class].Add(1) }

// CheckpointAt is when the checkpoint was last saved, by the local clock; zero
// before the first time.
func (c *Counters) CheckpointAt() time.Time {
	if at := c.checkpointAt.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// Status is what a relay is doing.
type Status struct {
	// InFlight is how many changes are read and not finished.
	InFlight int
	// InFlightBytes is their size.
	InFlightBytes int64
	// Full is since when the next change waits for room among those in flight, by the
	// local clock, and First where the first of these stands; both are zero while none waits.
	Full  time.Time
	First contract.Position
	// Reached is up to where everything is finished; no token before the first.
	Reached Point
	// Outage tells why nothing can be sent; the zero Outage when all is well.
	Outage Outage
	// Unsaved is what the state database has not stored for the longest time.
	Unsaved Unsaved
	// Pace is how many messages go in a second at most, since the topic has
	// refused more; 0 when there is no bound.
	Pace float64
}

// Status may be called from any goroutine.
func (r *Relay) Status() Status {
	count, bytes := r.watermark.unfinished()
	outage, pace := r.breaker.current()
	full, first := r.watermark.waits()
	return Status{
		InFlight:      count,
		InFlightBytes: bytes,
		Full:          full,
		First:         first,
		Reached:       r.watermark.read().Point,
		Outage:        outage,
		Unsaved:       r.saves.longest(),
		Pace:          pace,
	}
}
