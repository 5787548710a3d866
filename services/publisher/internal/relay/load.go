package relay

import (
	"math"
	"time"
)

// mebibyte is what Config.SendTimeout is for.
const mebibyte = 1 << 20

// load bounds how many bytes are under way to the topic together: to what it has accepted
// in the last third of the time that a send has, so that each is in time though the others
// of its connection take turns with it; to half a MiB at least. A larger send goes alone.
//
// It is guarded by the breaker's lock.
type load struct {
	timeout  time.Duration // Config.SendTimeout
	underWay int
	beside   int     // sends under way that count for nothing: see goesBeside
	recent   float64 // of the bytes that were accepted, as of the time of
	at       time.Time
}

// memory is the time over which what was accepted is remembered, in seconds.
func (l *load) memory() float64 { return l.timeout.Seconds() / 3 }

// lately is how many bytes were accepted in that time.
func (l *load) lately(now time.Time) float64 {
	return l.recent * math.Exp(-now.Sub(l.at).Seconds()/l.memory())
}

// fits reports whether a send of size bytes may begin.
func (l *load) fits(now time.Time, size int) bool {
	return l.underWay == 0 && l.beside == 0 || float64(l.underWay+size) <= max(l.lately(now), mebibyte/2)
}

// begin returns the ticket of a send of size bytes that begins.
func (l *load) begin(now time.Time, t ticket, size int) ticket {
	t.began, t.size = now, size
	l.underWay += size
	if size == 0 {
		l.beside++
	}
	return t
}

// end notes that a send has ended. Of one that took longer than what is remembered, only
// a part was accepted in that time.
func (l *load) end(now time.Time, t ticket, accepted bool) {
	l.underWay -= t.size
	if t.size == 0 {
		l.beside--
	}
	if accepted {
		l.recent = l.lately(now) + float64(t.size)/max(1, now.Sub(t.began).Seconds()/l.memory())
		l.at = now
	}
}
