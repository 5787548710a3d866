package app

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/redact"
	"changerelay/services/publisher/internal/relay"
)

// outageGrace is how long sending, or the lease, may fail for a reason that may
// pass before the process says that it is not ready.
const outageGrace = 30 * time.Second

// States of a process, as /status says them.
const (
	stateStarting   = "starting"
	stateStandby    = "standing by"
	stateClaiming   = "claiming"
	statePublishing = "publishing"
	stateBlocked    = "blocked"
	stateHalted     = "halted"
	stateDraining   = "draining"
	stateStopped    = "stopped"
)

// board gathers what the process is doing, for the admin port.
type board struct {
	config   Config
	version  string
	holder   lease.Holder
	elector  *lease.Elector
	counters *relay.Counters
	secrets  *redact.Redactor
	sending  *rate

	mu       sync.Mutex
	phase    string                    // guarded by mu: starting, "", draining or stopped
	err      error                     // guarded by mu: why the process does not get on, outside a term
	halted   error                     // guarded by mu: why publishing is halted
	claimed  *checkpoint.Checkpoint    // guarded by mu: as claimed for the term; nil outside terms
	loop     *relay.Relay              // guarded by mu: the term's; nil outside terms
	reading  func() changestream.State // guarded by mu: the term's; nil outside terms
	copied   *copyRun                  // guarded by mu: nil while nothing is copied
	gaps     []mongostate.Gap          // guarded by mu: the latest, as known to the leader
	oldest   checkpoint.ClusterTime    // guarded by mu: of the operation log; zero where not known
	parked   int64                     // guarded by mu: changes in the store when the term began
	parkedAt int64                     // guarded by mu: the counter at that time
}

func newBoard(config Config, version string, holder lease.Holder, elector *lease.Elector, counters *relay.Counters, secrets *redact.Redactor) *board {
	return &board{
		config:   config,
		version:  version,
		holder:   holder,
		elector:  elector,
		counters: counters,
		secrets:  secrets,
		sending:  &rate{count: counters.Sent},
		phase:    stateStarting,
	}
}

func (b *board) update(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

func (b *board) found()            { b.update(func() { b.phase, b.err = "", nil }) }
func (b *board) notFound(e error)  { b.update(func() { b.err = e }) }
func (b *board) failed(e error)    { b.update(func() { b.err = e }) }
func (b *board) draining()         { b.update(func() { b.phase = stateDraining }) }
func (b *board) stopped()          { b.update(func() { b.phase = stateStopped }) }
func (b *board) halt(reason error) { b.update(func() { b.halted = reason }) }

// claim shows a term that has claimed its checkpoint.
func (b *board) claim(claimed checkpoint.Checkpoint, parked int64, gaps []mongostate.Gap) {
	b.update(func() {
		b.claimed, b.gaps = &claimed, gaps
		b.parked, b.parkedAt = parked, b.counters.Parked()
	})
}

// beginRun shows what publishes from a place on.
func (b *board) beginRun(claimed checkpoint.Checkpoint, loop *relay.Relay, reading func() changestream.State) {
	b.update(func() {
		b.claimed, b.loop, b.reading = &claimed, loop, reading
		b.err, b.halted = nil, nil
	})
}

func (b *board) gapsAre(gaps []mongostate.Gap)          { b.update(func() { b.gaps = gaps }) }
func (b *board) oldestIs(oldest checkpoint.ClusterTime) { b.update(func() { b.oldest = oldest }) }

func (b *board) endTerm() {
	b.update(func() {
		b.claimed, b.loop, b.reading, b.halted, b.err = nil, nil, nil, nil, nil
		b.gaps, b.oldest = nil, checkpoint.ClusterTime{}
	})
}

// live fails when a leader acts far beyond its lease: its loops are stuck.
func (b *board) live() error {
	election := b.elector.State()
	if election.Role == lease.Leader && time.Since(election.TrustedUntil) > overdue {
		return errors.New("leading without a lease")
	}
	return nil
}

// ready fails while the process could not publish if it had to.
func (b *board) ready() error {
	s := b.snapshot()
	switch {
	case s.state == stateStarting, s.state == stateHalted, s.state == stateDraining, s.state == stateStopped:
		return errors.New(s.state)
	case s.outage.Err != nil && (s.outage.Class == relay.Blocked || time.Since(s.outage.Since) > outageGrace):
		return fmt.Errorf("sending fails: %w", s.outage.Err)
	case s.election.Conflict != "":
		return errors.New("the lease is used for another stream as well")
	case s.election.LastError != "" && time.Since(s.election.ObservedAt) > outageGrace:
		return errors.New("the lease can not be read")
	}
	return nil
}

// snapshot is the board at one moment.
type snapshot struct {
	election lease.State
	state    string
	err      error
	halted   error
	term     int64
	relay    relay.Status
	outage   relay.Outage
	reopened int64
	parked   int64
	position string
	lag      time.Duration
	lagKnown bool
	// upTo is the time up to which all is published; zero where not known.
	upTo   time.Time
	copied *CopyStatus
	gaps   []mongostate.Gap
	// headroom is how much younger than the operation log's oldest entry the
	// stream's place is.
	headroom      time.Duration
	headroomKnown bool
}

func (b *board) snapshot() snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := snapshot{election: b.elector.State(), err: b.err, halted: b.halted}
	s.parked = b.parked + b.counters.Parked() - b.parkedAt
	if b.loop != nil {
		s.term = b.claimed.Term
		s.relay = b.loop.Status()
		s.outage = s.relay.Outage
		reading := b.reading()
		s.reopened = reading.Reopened
		if s.err == nil {
			s.err = reading.Err
		}
		b.reached(&s)
	}
	s.copied, s.gaps = b.copied.status(), b.gaps
	s.state = b.stateOf(s)
	switch {
	case s.halted != nil:
		s.err = s.halted
	case s.outage.Err != nil:
		s.err = s.outage.Err
	case s.election.Conflict != "":
		s.err = fmt.Errorf("lease %q is held for stream %q, not for %q: give each stream a LEASE_NAME of its own",
			b.config.LeaseName, s.election.Conflict, b.config.StreamName)
	case s.err == nil && s.election.LastError != "":
		s.err = errors.New(s.election.LastError)
	}
	return s
}

// reached fills in how far the stream is published, and since when it is not.
func (b *board) reached(s *snapshot) {
	s.position = string(s.relay.Reached.Position)
	asOf := s.relay.Reached.AsOf
	if s.relay.Reached.Token == nil {
		s.position = string(b.claimed.Position)
		if seconds, _, err := b.claimed.Position.ClusterTime(); err == nil {
			asOf = time.Unix(int64(seconds), 0)
		}
	}
	if !asOf.IsZero() {
		s.lag, s.lagKnown, s.upTo = max(time.Since(asOf), 0), true, asOf
	}
	if seconds, _, err := contract.Position(s.position).ClusterTime(); err == nil && !b.oldest.IsZero() {
		s.headroom, s.headroomKnown = time.Duration(int64(seconds)-int64(b.oldest.Seconds))*time.Second, true
	}
}

func (b *board) stateOf(s snapshot) string {
	switch {
	case b.phase != "":
		return b.phase
	case s.election.Role != lease.Leader:
		return stateStandby
	case s.halted != nil:
		return stateHalted
	case b.loop == nil:
		return stateClaiming
	case s.outage.Err != nil:
		return stateBlocked
	default:
		return statePublishing
	}
}
