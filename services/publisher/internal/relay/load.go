package relay

import (
	"math"
	"time"
)

const (
	// mebibyte is what Config.SendTimeout is for.
	mebibyte = 1 << 20
	// envelope is about what a message carries beside its body, in bytes: its properties.
	envelope = 1 << 10
)

// load bounds how many bytes are under way to the topic together: to what it has accepted
// in the last third of the time that a send has, so that each is in time though the others
// of its connection take turns with it; to half a MiB at least. A larger send goes alone.
//
// It is guarded by the breaker's lock.
type load struct {
	timeout  time.Duration // Config.SendTimeout
	underWay int
	beside   int       // bytes that go beside those: see laneSender.demand
	turns    int       // sends under way that are a struck message's turn
	next     time.Time // when the next turn of one may begin
	recent   float64   // of the bytes that were accepted, as of the time of
	at       time.Time
}

// demand is what a send asks of the load. A message that is struck has failed while others
// were accepted. It goes beside them, and counts for nothing to them, or has its turn.
type demand struct {
	bytes        int
	beside, turn bool
}

// memory is the time over which what was accepted is remembered, in seconds.
func (l *load) memory() float64 { return l.timeout.Seconds() / 3 }

// lately is how many bytes were accepted in that time.
func (l *load) lately(now time.Time) float64 {
	return l.recent * math.Exp(-now.Sub(l.at).Seconds()/l.memory())
}

// limit is how many bytes may be under way, and as many beside those.
func (l *load) limit(now time.Time) int { return int(max(l.lately(now), mebibyte/2)) }

// hold is how long a send has to wait that nobody else is to wait for: one beside others for
// those beside them; a struck message for its turn, which is twice as long after the one
// before it as that took, so that together they hold up the others for a third of the time.
func (l *load) hold(now time.Time, d demand) time.Duration {
	switch {
	case d.beside && l.beside > 0 && l.beside+d.bytes > l.limit(now), d.turn && l.turns > 0:
		return longestPause
	case d.turn:
		return l.next.Sub(now)
	default:
		return 0
	}
}

// fits reports whether there is room for a send.
func (l *load) fits(now time.Time, d demand) bool {
	return d.beside || l.underWay == 0 || l.underWay+d.bytes <= l.limit(now)
}

// begin returns the ticket of a send that begins.
func (l *load) begin(now time.Time, t ticket, d demand) ticket {
	t.began, t.demand = now, d
	l.count(d, 1)
	return t
}

// end notes that a send has ended. Of one that took longer than what is remembered, only
// a part was accepted in that time.
func (l *load) end(now time.Time, t ticket, accepted bool) {
	l.count(t.demand, -1)
	if accepted && !t.beside {
		l.recent = l.lately(now) + float64(t.bytes)/max(1, now.Sub(t.began).Seconds()/l.memory())
		l.at = now
	}
	if !accepted && t.turn {
		l.next = now.Add(2 * now.Sub(t.began))
	}
}

// count adds to what is under way, or takes from it.
func (l *load) count(d demand, sign int) {
	if d.beside {
		l.beside += sign * d.bytes
	} else {
		l.underWay += sign * d.bytes
	}
	if d.turn {
		l.turns += sign
	}
}
