package lease

import "time"

// Role is what an elector does at a time.
type Role string

// The roles.
const (
	Stopped Role = "stopped"
	Standby Role = "standby"
	Leader  Role = "leader"
)

// State is what an elector knows, for people and metrics.
type State struct {
	Role Role
	// Record is the record as last read or written.
	Record Record
	// ObservedAt is when that was, by the local clock.
	ObservedAt time.Time
	// Conflict is what the holder leads where that is not what this elector wants
	// to lead; empty where it is.
	Conflict string
	// TrustedUntil is how long the leader trusts its lease, by the local clock.
	TrustedUntil time.Time
	// Takeovers, RenewFailures and ReleaseFailures count since the start.
	Takeovers, RenewFailures, ReleaseFailures int64
	// LastError is the last failed call's, empty after one that succeeded.
	LastError string
}

// State returns a snapshot. It may be called from any goroutine.
func (e *Elector) State() State {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state
}

func (e *Elector) update(change func(*State)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(&e.state)
}

func (e *Elector) setRole(role Role) {
	if role == Standby && e.State().Role != Standby {
		e.log.Info().Msg("standing by")
	}
	e.update(func(s *State) { s.Role = role })
}

func (e *Elector) observe(record Record) {
	conflict := ""
	if record.Live() && record.Subject != "" && record.Subject != e.config.Subject {
		conflict = record.Subject
	}
	news := false
	e.update(func(s *State) {
		news = s.Conflict != conflict
		s.Record, s.ObservedAt, s.LastError, s.Conflict = record, time.Now(), "", conflict
	})
	if news && conflict != "" {
		e.log.Error().Str("holder", record.Holder.ID).Str("leads", conflict).Str("wanted", e.config.Subject).
			Msg("the lease is used for something else as well, only one of them is led")
	}
}

func (e *Elector) lead(deadline time.Time) {
	e.update(func(s *State) { s.Role = Leader; s.Takeovers++; s.TrustedUntil = deadline })
}

func (e *Elector) trust(deadline time.Time) {
	e.update(func(s *State) { s.TrustedUntil = deadline })
}

func (e *Elector) renewFailed(err error) {
	e.log.Warn().Err(err).Msg("lease not renewed, trying again until the deadline")
	e.update(func(s *State) { s.RenewFailures++; s.LastError = err.Error() })
}

func (e *Elector) releaseFailed() {
	e.update(func(s *State) { s.ReleaseFailures++ })
}

// failed logs the first of a row of failures.
func (e *Elector) failed(err error) {
	first := false
	e.update(func(s *State) { first = s.LastError == ""; s.LastError = err.Error() })
	if first {
		e.log.Warn().Err(err).Msg("lease store not answering, trying again")
	}
}
