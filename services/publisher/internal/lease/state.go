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
	// Conflict is what the holder leads where that is not what this elector wants
	// to lead; empty where it is.
	Conflict string
	// TrustedUntil is how long the leader trusts its lease, by the local clock.
	TrustedUntil time.Time
	// Takeovers, RenewFailures and ReleaseFailures count since the start.
	Takeovers, RenewFailures, ReleaseFailures int64
	// LastError is the last failed call's, and FailingSince since when the lease can be
	// neither taken nor renewed, by the local clock: until a call of this process, or
	// the live lease of another, shows that it can.
	LastError    string
	FailingSince time.Time
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

// observe notes the record as read. A server that answers reads may yet refuse
// writes, so that one may not take the lease ends no failure.
func (e *Elector) observe(record Record) {
	if record.Live() && !record.Holder.SameProcess(e.config.Holder) || !e.eligible() {
		e.answered()
	}
	e.note(record)
}

// stored notes the record as it stands after a write that was answered.
func (e *Elector) stored(record Record) {
	e.answered()
	e.note(record)
}

func (e *Elector) answered() {
	e.update(func(s *State) { s.LastError, s.FailingSince = "", time.Time{} })
}

func (e *Elector) note(record Record) {
	conflict := ""
	if record.Live() && record.Subject != "" && record.Subject != e.config.Subject {
		conflict = record.Subject
	}
	news := false
	e.update(func(s *State) {
		news = s.Conflict != conflict
		s.Record, s.Conflict = record, conflict
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
	e.update(func(s *State) { s.RenewFailures++ })
	e.unanswered(err)
}

func (e *Elector) releaseFailed() {
	e.update(func(s *State) { s.ReleaseFailures++ })
}

// failed logs the first of a row of failures.
func (e *Elector) failed(err error) {
	if e.unanswered(err) {
		e.log.Warn().Err(err).Msg("lease neither read nor taken, trying again")
	}
}

// unanswered notes a failure and reports whether it is the first of a row.
func (e *Elector) unanswered(err error) (first bool) {
	e.update(func(s *State) {
		first = s.FailingSince.IsZero()
		s.LastError = err.Error()
		if first {
			s.FailingSince = time.Now()
		}
	})
	return first
}
