package backfill

import "time"

// State is how reading goes.
type State struct {
	// Err is why the last chunk could not be read; nil when it could.
	Err error
	// Unread is since when a chunk is asked for in vain, by the local clock; zero while
	// none is asked for.
	Unread time.Time
}

// State returns a snapshot.
func (s *Source) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// ask notes that a chunk is asked for.
func (s *Source) ask() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Unread.IsZero() {
		s.state.Unread = time.Now()
	}
}

// answered notes whether a chunk was read. Until one is, the source is asked in vain.
func (s *Source) answered(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Err = err
	if err == nil {
		s.state.Unread = time.Time{}
	}
}
