package relay

import (
	"sync"
	"time"
)

// Unsaved is what the state database was told and has not stored; the zero Unsaved is
// nothing.
type Unsaved struct {
	Err error
	// Since is when that was first tried in vain, by the local clock.
	Since time.Time
}

// saves follows what the state database is told: the checkpoint, and changes to be
// parked. Nothing goes on past a change that is not parked.
type saves struct {
	mu     sync.Mutex
	failed map[string]Unsaved // guarded by mu
}

// note notes how an attempt to store something went.
func (s *saves) note(what string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		delete(s.failed, what)
		return
	}
	since := time.Now()
	if before, is := s.failed[what]; is {
		since = before.Since
	}
	if s.failed == nil {
		s.failed = map[string]Unsaved{}
	}
	s.failed[what] = Unsaved{Err: err, Since: since}
}

// longest is what has not been stored for the longest time.
func (s *saves) longest() Unsaved {
	s.mu.Lock()
	defer s.mu.Unlock()
	var longest Unsaved
	for _, one := range s.failed {
		if longest.Since.IsZero() || one.Since.Before(longest.Since) {
			longest = one
		}
	}
	return longest
}
