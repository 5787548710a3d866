// Package status shows what a stream is doing: a tracker that its loops write to, and
// what /status, readiness and metrics read from it.
package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/rate"
	"changerelay/services/publisher/internal/redact"
	"changerelay/services/publisher/internal/relay"
)

// outageGrace is how long sending, reading, claiming or the lease may fail for a
// reason that may pass before the process says that it is not ready.
const outageGrace = 30 * time.Second

// overdue is how long a leader may be beyond its lease before liveness fails.
const overdue = time.Minute

// unreadGrace is how long the source may take to answer before that is said: a
// poll takes a second while all is well.
const unreadGrace = 3 * time.Second

// stillGrace is how long the source's answers may lead no further before that is said:
// an idle replica set notes its time every 10 seconds (periodicNoopIntervalSecs). It is
// also how long the window may be full without room for one more.
const stillGrace = 30 * time.Second

// States of a process, as /status says them.
const (
	stateStarting   = "starting"
	StateStandby    = "standing by"
	stateClaiming   = "claiming"
	stateResuming   = "resuming"
	stateUnread     = "not reading"
	stateStill      = "standing still"
	stateUnsaved    = "not saving"
	statePublishing = "publishing"
	stateBlocked    = "blocked"
	StateHalted     = "halted"
	stateDraining   = "draining"
	stateStopped    = "stopped"
)

// Tracker gathers what the process is doing, for the admin port.
type Tracker struct {
	config   config.Config
	version  string
	holder   lease.Holder
	elector  *lease.Elector
	counters *relay.Counters
	secrets  *redact.Redactor
	sending  *rate.Meter

	mu        sync.Mutex
	phase     string                    // guarded by mu: starting, "", draining or stopped
	err       error                     // guarded by mu: why the process makes no progress, outside a term
	halted    error                     // guarded by mu: why publishing is halted
	misfit    error                     // guarded by mu: why the lease is left to others
	claimed   *checkpoint.Checkpoint    // guarded by mu: as claimed for the term; nil outside terms
	loop      *relay.Relay              // guarded by mu: the term's; nil outside terms
	reading   func() changestream.State // guarded by mu: the term's; nil outside terms
	copied    *CopyRun                  // guarded by mu: nil while nothing is copied
	record    checkpoint.Record         // guarded by mu: of the stream, as it was for the last claim
	gaps      []mongostate.Gap          // guarded by mu: the latest, as known to the leader
	gapCount  map[string]int64          // guarded by mu: all of them, by decision; never written to
	oldest    checkpoint.ClusterTime    // guarded by mu: of the operation log; zero where not known
	parked    int64                     // guarded by mu: changes in the store when they were counted last
	parkedAt  int64                     // guarded by mu: the counter at that time
	reachedAt relay.Point               // guarded by mu: where the relay before this one ended
	claiming  time.Time                 // guarded by mu: since when a leader has no relay, as far as was seen
	stopping  time.Time                 // guarded by mu: since when it is halted, as far as was seen
	holding   time.Time                 // guarded by mu: since when changes are parked, as far as was seen
}

// NewTracker returns the tracker of a stream that has not begun.
func NewTracker(cfg config.Config, version string, holder lease.Holder, elector *lease.Elector, counters *relay.Counters, secrets *redact.Redactor) *Tracker {
	return &Tracker{
		config:   cfg,
		version:  version,
		holder:   holder,
		elector:  elector,
		counters: counters,
		secrets:  secrets,
		sending:  rate.New(counters.Sent),
		phase:    stateStarting,
	}
}

// Run samples how much is sent, until ctx ends.
func (b *Tracker) Run(ctx context.Context) { b.sending.Run(ctx) }

func (b *Tracker) update(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// Found shows that the source answers.
func (b *Tracker) Found() { b.update(func() { b.phase, b.err = "", nil }) }

// NotFound shows why the source does not.
func (b *Tracker) NotFound(e error) { b.update(func() { b.err = e }) }

// Draining shows that a stop was asked for.
func (b *Tracker) Draining() { b.update(func() { b.phase = stateDraining }) }

// Stopped shows that the process has stopped.
func (b *Tracker) Stopped() { b.update(func() { b.phase = stateStopped }) }

// Halt shows what an operator has to decide about.
func (b *Tracker) Halt(reason error) { b.update(func() { b.halted = reason }) }

// StandAside shows why the lease is left to others; nil where it is not.
func (b *Tracker) StandAside(why error) { b.update(func() { b.misfit = why }) }

// Aside is why the lease is left to others; nil where it is not.
func (b *Tracker) Aside() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.misfit
}

// Failed shows why a term has ended: until the next one nothing is published.
func (b *Tracker) Failed(e error) {
	b.update(func() {
		b.err = e
		if b.loop != nil {
			b.claiming = time.Now()
			if reached := b.loop.Status().Reached; reached.Token != nil {
				b.reachedAt = reached
			}
		}
		b.loop, b.reading = nil, nil
	})
}

// Claim shows a term that has claimed its checkpoint.
func (b *Tracker) Claim(claimed checkpoint.Checkpoint, record checkpoint.Record, parked int64) {
	b.update(func() {
		b.claimed, b.record = &claimed, record
		b.parked, b.parkedAt = parked, b.counters.Parked()
	})
}

// CountParked shows how many changes are parked, as the store had it after the counter of
// parked changes had reached a number.
func (b *Tracker) CountParked(parked, counted int64) {
	b.update(func() { b.parked, b.parkedAt = parked, counted })
}

// BeginRun shows what publishes from a place on.
func (b *Tracker) BeginRun(claimed checkpoint.Checkpoint, loop *relay.Relay, reading func() changestream.State) {
	b.update(func() {
		b.claimed, b.loop, b.reading = &claimed, loop, reading
		b.err, b.halted, b.reachedAt = nil, nil, relay.Point{}
	})
}

// Seen shows a standby's view of the stream.
func (b *Tracker) Seen(record checkpoint.Record) {
	b.update(func() { b.record = record })
}

// GapsAre shows the latest gaps of the ledger, and how many there are by decision.
func (b *Tracker) GapsAre(latest []mongostate.Gap, counts map[string]int64) {
	b.update(func() { b.gaps, b.gapCount = latest, counts })
}

// OldestIs shows how far back the operation log reaches.
func (b *Tracker) OldestIs(oldest checkpoint.ClusterTime) { b.update(func() { b.oldest = oldest }) }

// EndTerm shows that this process does not lead any more.
func (b *Tracker) EndTerm() {
	b.update(func() {
		b.claimed, b.loop, b.reading, b.halted, b.err = nil, nil, nil, nil, nil
		if b.misfit == nil { // who stands aside goes on saying what stopped it
			b.gaps, b.gapCount = nil, nil
		}
		b.oldest, b.record = checkpoint.ClusterTime{}, checkpoint.Record{}
		b.reachedAt, b.claiming = relay.Point{}, time.Time{}
	})
}

// Live fails when a leader acts far beyond its lease: its loops are stuck.
func (b *Tracker) Live() error {
	election := b.elector.State()
	if election.Role == lease.Leader && time.Since(election.TrustedUntil) > overdue {
		return errors.New("leading without a lease")
	}
	return nil
}

// snapshot is the tracker at one moment.
type snapshot struct {
	election lease.State
	state    string
	err      error
	halted   error
	term     int64
	relay    relay.Status
	outage   relay.Outage
	reopened int64
	// claiming is since when a leader publishes nothing, resuming since when the
	// source looks for the place to go on from, and unread since when nothing can be
	// read; zero while they do not. Still is since when the source's answers lead no
	// further. The process's clock says so.
	claiming, resuming, unread, still time.Time
	// unsaved is since when the state database does not store a checkpoint or a change
	// to be parked; zero while it does.
	unsaved time.Time
	// haltedAt is since when it is halted.
	haltedAt time.Time

	parked int64
	// holding is since when there are parked changes.
	holding  time.Time
	position string
	lag      time.Duration
	lagKnown bool
	// upTo is the time up to which all is published; zero where not known.
	upTo   time.Time
	copied *CopyStatus
	began  checkpoint.Beginning
	gaps   []mongostate.Gap
	// gapCount counts all gaps, by decision.
	gapCount map[string]int64
	// headroom is how much younger than the operation log's oldest entry the
	// stream's place is.
	headroom      time.Duration
	headroomKnown bool
}

func (b *Tracker) snapshot() snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := snapshot{election: b.elector.State(), err: b.err, halted: cmp.Or(b.halted, b.misfit)}
	s.parked = b.parked + b.counters.Parked() - b.parkedAt
	if b.loop != nil {
		s.term = b.claimed.Term
		s.relay = b.loop.Status()
		s.outage = s.relay.Outage
		s.notStored()
		b.read(&s)
	}
	if b.claimed != nil {
		b.reached(&s)
	}
	b.claiming = b.first(b.claiming, s.election.Role == lease.Leader && b.loop == nil && s.halted == nil)
	s.claiming = b.claiming
	b.holding = b.first(b.holding, s.parked > 0)
	b.stopping = b.first(b.stopping, s.halted != nil)
	s.holding, s.haltedAt = b.holding, b.stopping
	s.copied, s.gaps, s.gapCount, s.began = b.copied.status(), b.gaps, b.gapCount, b.record.Began
	s.state = b.stateOf(s)
	switch {
	case s.halted != nil:
		s.err = s.halted
	case s.outage.Err != nil:
		s.err = s.outage.Err
	case s.election.Conflict != "":
		s.err = fmt.Errorf("lease %q is held for stream %q, not for %q: give each stream a LEASE_NAME of its own",
			b.config.LeaseName, s.election.Conflict, b.config.StreamName)
	case s.err == nil && !s.unsaved.IsZero():
		s.err = s.relay.Unsaved.Err
	case s.err == nil && s.election.LastError != "":
		s.err = errors.New(s.election.LastError)
	case s.err == nil && !s.relay.Full.IsZero() && time.Since(s.relay.Full) > stillGrace:
		s.err = fmt.Errorf("nothing more is read since %s: what is in flight fills MAX_IN_FLIGHT or MAX_IN_FLIGHT_BYTES, "+
			"and the first of it, at position %s, is neither sent nor parked", clock(s.relay.Full), s.relay.First)
	}
	return s
}

// first returns since when something is so, as far as was seen.
func (*Tracker) first(since time.Time, so bool) time.Time {
	switch {
	case !so:
		return time.Time{}
	case since.IsZero():
		return time.Now()
	default:
		return since
	}
}

// read fills in how reading goes.
func (b *Tracker) read(s *snapshot) {
	reading := b.reading()
	s.reopened, s.resuming, s.unread = reading.Reopened, reading.Opening, reading.Unread
	if time.Since(s.unread) <= unreadGrace {
		s.unread = time.Time{}
	}
	if s.still = reading.Still; reading.Answered.Sub(s.still) <= stillGrace || !s.unread.IsZero() {
		s.still = time.Time{}
	}
	if s.err == nil {
		s.err = reading.Err
	}
	if s.err == nil && !s.unread.IsZero() && s.resuming.IsZero() {
		s.err = errSilent
	}
	if s.err == nil && !s.still.IsZero() {
		s.err = errStill
	}
}

// notStored fills in since when the state database does not store what it is told.
func (s *snapshot) notStored() {
	if since := s.relay.Unsaved.Since; time.Since(since) > unreadGrace {
		s.unsaved = since
	}
}

// reached fills in how far the stream is published, and since when it is not.
func (b *Tracker) reached(s *snapshot) {
	reached := s.relay.Reached
	if reached.Token == nil {
		reached = b.reachedAt
	}
	s.position = string(reached.Position)
	asOf := reached.AsOf
	if reached.Token == nil {
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

func (b *Tracker) stateOf(s snapshot) string {
	switch {
	case b.phase != "":
		return b.phase
	case s.halted != nil:
		return StateHalted
	case s.election.Role != lease.Leader:
		return StateStandby
	case b.loop == nil:
		return stateClaiming
	case s.outage.Err != nil:
		return stateBlocked
	case !s.resuming.IsZero():
		return stateResuming
	case !s.unread.IsZero():
		return stateUnread
	case !s.unsaved.IsZero():
		return stateUnsaved
	case !s.still.IsZero():
		return stateStill
	default:
		return statePublishing
	}
}
