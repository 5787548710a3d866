package watch

import (
	"sync/atomic"
	"time"

	"changerelay/services/projector/internal/session"
)

// Engine is what a lag depends on beside the events.
type Engine interface {
	// Idle is when the broker last said that there is nothing to do; zero while there is.
	Idle() time.Time
	Applying() *session.Outage
	Accepting() *session.Outage
	// Undecodable are sessions with a message that cannot be decoded, and since when.
	Undecodable() (sessions []string, since time.Time)
}

var _ Engine = (*session.Engine)(nil)

// lag is how long the latest event took that became readable. The zero lag is unknown.
type lag struct {
	took atomic.Int64 // nanoseconds
	at   atomic.Int64 // Unix nanoseconds; 0 before the first
}

func (l *lag) note(now time.Time, took time.Duration) {
	l.took.Store(int64(max(took, 0)))
	l.at.Store(now.UnixNano())
}

// current is how far readers are behind, as far as this process can tell: what the last
// event took; nothing once the broker says that there is nothing to do, and then at most
// for how long it could not be reached; growing while events cannot be had, decoded or
// stored. False until known.
func (l *lag) current(engine Engine) (time.Duration, bool) {
	behind, known := l.ofEvents(engine)
	if _, since := engine.Undecodable(); !since.IsZero() {
		return max(behind, time.Since(since)), true
	}
	return behind, known
}

// ofEvents is as current, but for what cannot be decoded.
func (l *lag) ofEvents(engine Engine) (time.Duration, bool) {
	last, unreachable := l.at.Load(), engine.Accepting().Since()
	switch idle := engine.Idle(); {
	case !idle.IsZero() && idle.UnixNano() > last:
		if unreachable.IsZero() {
			return 0, true
		}
		return time.Since(unreachable), true
	case last == 0:
		return 0, false
	case engine.Applying().Current() != nil || !unreachable.IsZero():
		return time.Duration(l.took.Load()) + time.Since(time.Unix(0, last)), true
	}
	return time.Duration(l.took.Load()), true
}
