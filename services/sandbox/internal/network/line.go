package network

import (
	"math/rand/v2"
	"time"
)

// Conditions are those of a connection. The zero value is no network at all.
type Conditions struct {
	// RoundTrip is the time there and back; each direction takes half of it.
	RoundTrip time.Duration
	// Jitter is the most that is added to a direction's half.
	Jitter time.Duration
	// BytesPerSecond is the bandwidth of each direction; 0 is no bound.
	BytesPerSecond int64
}

// line computes when bytes arrive that are sent one after another.
type line struct {
	free time.Time // when what was sent before has left
}

// send says when bytes arrive that are given to the line now. What overtakes by its jitter has still to come behind.
func (l *line) send(now time.Time, size int, c Conditions) time.Time {
	if l.free.Before(now) {
		l.free = now
	}
	if c.BytesPerSecond > 0 {
		l.free = l.free.Add(time.Duration(float64(size) / float64(c.BytesPerSecond) * float64(time.Second)))
	}
	at := l.free.Add(c.RoundTrip / 2)
	if c.Jitter > 0 {
		at = at.Add(rand.N(c.Jitter))
	}
	return at
}
