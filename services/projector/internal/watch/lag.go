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
	// Paused is since when no session is held because of a pause, EmptyHanded since when
	// no message comes of those that are; zero for not.
	Paused() time.Time
	EmptyHanded() time.Time
	// Oldest is when the broker stored the oldest message that is received and not settled.
	Oldest() (oldest time.Time, some bool)
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

// quietTime is how long no event becomes readable before the lag follows what is in hand.
const quietTime = 10 * time.Second

// current is how far readers are behind, as far as this process can tell: what the last
// event took; nothing once the broker says that there is nothing to do, and then at most
// for how long it could not be reached; growing while events cannot be had, decoded or
// stored, and while none becomes readable at least as much as what is in hand is old.
// Before the first event it is for how long one of these lasts; false where none does.
func (l *lag) current(engine Engine) (time.Duration, bool) {
	behind, known := l.ofEvents(engine)
	if _, since := engine.Undecodable(); !since.IsZero() {
		return max(behind, time.Since(since)), true
	}
	return behind, known
}

// ofEvents is as current, but for what cannot be decoded.
func (l *lag) ofEvents(engine Engine) (time.Duration, bool) {
	last, took := l.at.Load(), time.Duration(l.took.Load())
	unreachable, still := engine.Accepting().Since(), earliest(engine.Paused(), engine.EmptyHanded())
	oldest, some := engine.Oldest()
	switch idle := engine.Idle(); {
	case still.IsZero() && !idle.IsZero() && idle.UnixNano() > last:
		if unreachable.IsZero() {
			return 0, true
		}
		return time.Since(unreachable), true
	case last == 0:
		if !some || time.Since(oldest) <= quietTime {
			oldest = time.Time{}
		}
		since := earliest(still, unreachable, engine.Applying().Since(), oldest)
		return max(time.Since(since), 0), !since.IsZero()
	case engine.Applying().Current() != nil || !unreachable.IsZero():
		return took + time.Since(time.Unix(0, last)), true
	case !still.IsZero():
		return took + time.Since(time.Unix(0, max(last, still.UnixNano()))), true
	case some && time.Since(time.Unix(0, last)) > quietTime:
		return max(took, time.Since(oldest)), true
	}
	return took, true
}

// earliest is the earliest of times of which each may be zero, for none.
func earliest(times ...time.Time) (first time.Time) {
	for _, one := range times {
		if first.IsZero() || !one.IsZero() && one.Before(first) {
			first = one
		}
	}
	return first
}
