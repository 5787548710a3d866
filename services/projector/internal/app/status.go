package app

import (
	"errors"
	"sync"
	"time"

	"changerelay/services/projector/internal/admin"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/session"
	"changerelay/services/projector/internal/watch"
)

// phase is where the process stands in its life.
type phase string

const (
	starting phase = "starting"
	running  phase = "running"
	draining phase = "draining"
	stopped  phase = "stopped"
)

// What the process waits for when it cannot work.
const (
	waitingForMongo      = "waiting for MongoDB"
	waitingForServiceBus = "waiting for Service Bus"
	braked               = "stopped by HALT_LIMIT"
	stoppedByEvent       = "stopped by an event"
	silent               = "cannot say that it lives"
)

// Status is what /status shows.
type Status struct {
	Service  string `json:"service"`
	Version  string `json:"version"`
	Instance string `json:"instance"`
	State    string `json:"state"`
	// Ready is what /ready says: whether the process takes part.
	Ready   bool   `json:"ready"`
	Started string `json:"started"`

	Topic        string `json:"topic"`
	Subscription string `json:"subscription"`
	Database     string `json:"database"`

	Sessions int64 `json:"sessions"`
	// SessionsWaiting are those of the whole subscription with messages.
	SessionsWaiting *int64 `json:"sessions_waiting,omitempty"`
	Accepting       int64  `json:"accepting"`
	Received        int64  `json:"received"`
	Applied         int64  `json:"applied"`
	Repeated        int64  `json:"repeated"`
	PassedBy        int64  `json:"passed_by"`
	Parked          int64  `json:"parked"`
	// Discarded came again after an operator had discarded their events.
	Discarded int64 `json:"discarded"`
	// Skipped counts events that this process has skipped, for each projection that did,
	// SkippedEvents those that the group has records of; absent until known.
	Skipped       int64  `json:"skipped"`
	SkippedEvents *int64 `json:"skipped_events,omitempty"`

	DeadLettered int64 `json:"dead_lettered"`
	Completed    int64 `json:"completed"`
	// CompletedPerSecond is the rate of the last ten seconds.
	CompletedPerSecond float64 `json:"completed_per_second"`
	// OldestUnapplied is when the broker stored the oldest message that this
	// process has received and not settled; absent while there is none.
	OldestUnapplied *time.Time `json:"oldest_unapplied,omitempty"`

	// InFlight are messages that this process has received and not settled.
	InFlight int `json:"in_flight"`
	// OutageSince is since when what State waits for does not answer; absent while
	// all does.
	OutageSince *time.Time `json:"outage_since,omitempty"`

	// HaltBrake says why no more sessions are taken; absent while they are.
	HaltBrake        string `json:"halt_brake,omitempty"`
	HaltedAggregates *int   `json:"halted_aggregates,omitempty"`
	// HaltedSince is since when aggregates are halted, as far as this process has seen.
	HaltedSince *time.Time `json:"halted_since,omitempty"`
	// ParkedMessages are all that the group has; absent until known.
	ParkedMessages *int64 `json:"parked_messages,omitempty"`
	// HaltsPutBack counts aggregates that this process found with parked messages and
	// without their halt.
	HaltsPutBack int64 `json:"halts_put_back"`
	// ParkedGone counts messages of the group that were parked and are gone, though
	// nobody has redriven or discarded them.
	ParkedGone int64 `json:"parked_gone,omitempty"`
	// WentBack counts how often this process found the read database restored from before.
	WentBack int64 `json:"read_database_went_back,omitempty"`
	// Emptied are read collections that were emptied or dropped, though no event did.
	Emptied []string `json:"emptied_collections,omitempty"`
	// Incomplete counts aggregates, by projection, that lack what was resent of them, since
	// they began later here; absent until known.
	Incomplete *int64   `json:"incomplete_aggregates,omitempty"`
	LagSeconds *float64 `json:"lag_seconds,omitempty"`

	// Projections is how far each projection is, by name.
	Projections map[string]readmodel.Progress `json:"projections"`

	VersionGaps   int64 `json:"version_gaps"`
	Inversions    int64 `json:"inversions"`
	SettlesFailed int64 `json:"settles_failed"`
	// SettlesThrottled were waited out; Resting are sessions that alone cannot be applied.
	SettlesThrottled int64 `json:"settles_throttled"`
	Resting          int64 `json:"sessions_resting"`
	// Undecodable are sessions in which this process found a message lately that cannot be
	// decoded, so that it and all that follow wait.
	Undecodable   []string `json:"sessions_undecodable,omitempty"`
	Retries       int64    `json:"retries"`
	GivenBack     int64    `json:"given_back"`
	LocksLost     int64    `json:"locks_lost"`
	AcceptsFailed int64    `json:"accepts_failed"`
	AcceptsHung   int64    `json:"accepts_hung"`

	// DeadLetters is the subscription's dead-letter queue; absent before the first look.
	DeadLetters *watch.DeadLetters `json:"dead_letters,omitempty"`

	// Ledger is what operators have decided; absent before the first look.
	Ledger *watch.Ledger `json:"ledger,omitempty"`

	LastError string `json:"last_error,omitempty"`
	// Troubles are the latest warnings and errors of the log.
	Troubles []admin.Trouble `json:"latest_troubles,omitempty"`
}

// Status returns what the process is doing. It may be called at any time.
func (a *App) Status() Status {
	e, d := a.engine.Counts(), a.handler.Counts()
	s := Status{
		Service:          "projector",
		Version:          a.version,
		Instance:         a.cfg.InstanceID,
		State:            a.state(),
		Started:          a.started.UTC().Format(time.RFC3339),
		Topic:            a.cfg.Topic,
		Subscription:     a.cfg.Subscription,
		Database:         a.cfg.Database,
		Sessions:         e.Held.Load(),
		Accepting:        e.Accepting.Load(),
		Received:         e.Received.Load(),
		Applied:          d.Applied.Load(),
		Repeated:         d.Repeated.Load(),
		PassedBy:         d.PassedBy.Load(),
		Parked:           d.Parked.Load(),
		Discarded:        d.Discarded.Load(),
		Skipped:          d.Skipped.Load(),
		DeadLettered:     e.DeadLettered.Load(),
		Completed:        e.Completed.Load(),
		VersionGaps:      d.VersionGaps.Load(),
		Inversions:       e.Inversions.Load(),
		SettlesFailed:    e.SettlesFailed.Load(),
		SettlesThrottled: e.SettlesThrottled.Load(),
		Resting:          e.Resting.Load(),
		Retries:          e.Retries.Load(),
		GivenBack:        e.GivenBack.Load(),
		LocksLost:        e.LocksLost.Load(),
		AcceptsFailed:    e.AcceptsFailed.Load(),
		AcceptsHung:      e.AcceptsHung.Load(),
	}
	s.Projections = a.metrics.Projections(a.engine)
	for name, of := range s.Projections {
		of.Projection = "" // it is the key
		s.Projections[name] = of
	}
	if n, known := a.waiting.Sessions(); known {
		s.SessionsWaiting = &n
	}
	s.CompletedPerSecond, s.InFlight = a.completing.PerSecond(), a.engine.InHand()
	s.Undecodable, _ = a.engine.Undecodable()
	s.Ready = a.ready() == nil
	if since := a.outageSince(); !since.IsZero() {
		since = since.UTC()
		s.OutageSince = &since
	}
	if at, some := a.engine.Oldest(); some {
		at = at.UTC()
		s.OldestUnapplied = &at
	}
	if n, known := a.halts.Count(); known {
		s.HaltedAggregates, s.HaltedSince = &n, a.halted.since(n > 0)
	}
	s.Emptied, s.Incomplete = a.emptied.Collections(), a.lacks.Aggregates()
	s.WentBack = a.metrics.WentBack.Load()
	s.SkippedEvents = a.parked.Skipped()
	s.ParkedMessages, s.HaltsPutBack, s.ParkedGone = a.parked.Messages(), a.parked.PutBack.Load(), a.parked.Gone.Load()
	if err := a.brake.Err(); err != nil {
		s.HaltBrake = err.Error()
	}
	s.DeadLetters = a.dead.Seen()
	s.Ledger = a.ledger.Last.Load()
	if lag, known := a.metrics.CurrentLag(a.engine); known {
		seconds := lag.Seconds()
		s.LagSeconds = &seconds
	}
	if err := a.lastError(); err != nil {
		s.LastError = a.redact(err.Error())
	}
	return s
}

// sample is what the page draws.
func (a *App) sample() admin.Sample {
	s := a.Status()
	sample := admin.Sample{PerSecond: s.CompletedPerSecond, InFlight: s.InFlight}
	if s.OldestUnapplied != nil {
		sample.BehindSeconds = max(time.Since(*s.OldestUnapplied).Seconds(), 0)
	}
	return sample
}

func (a *App) state() string {
	switch p := a.phase.Load().(phase); {
	case a.mongo.Current() != nil && p == starting:
		return waitingForMongo
	case p != running:
		return string(p)
	case a.brake.Stopped():
		return stoppedByEvent
	case a.brake.On():
		return braked
	case a.unreached() != nil, a.engine.Accepting().Current() != nil, a.engine.Settling().Current() != nil:
		return waitingForServiceBus
	case a.engine.Applying().Current() != nil:
		return waitingForMongo
	case a.process.Silent() != nil:
		return silent
	}
	return string(running)
}

// outageSince is since when what the state says is waited for does not answer; zero
// where nothing is.
func (a *App) outageSince() time.Time {
	if a.unreached() != nil {
		return time.Unix(0, a.asking.Load())
	}
	for _, one := range []*session.Outage{&a.mongo, a.engine.Accepting(), a.engine.Settling(), a.engine.Applying()} {
		if since := one.Since(); !since.IsZero() {
			return since
		}
	}
	return time.Time{}
}

// seen is since when something is so, as far as was looked.
type seen struct {
	mu sync.Mutex
	at *time.Time // guarded by mu; nil while it is not so
}

func (s *seen) since(so bool) *time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !so:
		s.at = nil
	case s.at == nil:
		now := time.Now().UTC()
		s.at = &now
	}
	return s.at
}

// lastError is the last failure, of one that lasts before one that is over.
func (a *App) lastError() error {
	outages := []error{
		a.brake.Err(), a.silence(), a.mongo.Current(), a.engine.Accepting().Current(), a.unreached(), a.engine.Settling().Current(), a.engine.Applying().Current(),
		a.engine.Applying().Last(), a.engine.Accepting().Last(), a.mongo.Last(),
	}
	for _, err := range outages {
		if err != nil {
			return err
		}
	}
	return nil
}

var errUnreached = errors.New("the broker has answered nothing yet; where that lasts, run projector doctor")

// unreached is why nothing can be said of the broker yet: it is asked for sessions and has
// never answered.
func (a *App) unreached() error {
	if a.phase.Load() != running || a.sessions.Reached() {
		return nil
	}
	return errUnreached
}

// silence is why the process cannot say that it lives, while it applies nothing for that.
func (a *App) silence() error {
	if a.phase.Load() != running {
		return nil
	}
	err := a.process.Silent()
	if err != nil {
		err = errors.Join(err, a.beats.Current())
	}
	return err
}

var errNotReady = errors.New("the process does not take part")

// ready tells whether the process takes part: it is running, reaches the broker, and is not
// stopped because of halts.
func (a *App) ready() error {
	if a.state() != string(running) {
		return errNotReady
	}
	return nil
}
