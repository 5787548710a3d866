package status

import (
	"time"

	"changerelay/services/publisher/internal/admin"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/relay"
)

// Status is what /status writes.
type Status struct {
	Service     string     `json:"service"`
	Version     string     `json:"version"`
	Instance    string     `json:"instance"`
	Incarnation string     `json:"incarnation"`
	Role        lease.Role `json:"role"`
	State       string     `json:"state"`
	// Ready is what /ready says: whether the process could publish if it had to.
	Ready bool `json:"ready"`
	// LastError is empty while all is well.
	LastError string `json:"last_error,omitempty"`

	Lease          string     `json:"lease"`
	Leader         string     `json:"leader,omitempty"`
	LeaseExpiresAt *time.Time `json:"lease_expires_at,omitempty"`
	// LeaseEndsInSeconds is how long the lease lasts unless it is renewed, by this
	// process's clock; absent while nobody is known to hold it.
	LeaseEndsInSeconds *float64 `json:"lease_ends_in_seconds,omitempty"`
	Takeovers          int64    `json:"takeovers"`
	RenewFailures      int64    `json:"renew_failures"`
	// LeaseUnreadSince is since when the lease can be neither taken nor renewed: what is
	// known of the leader may be as old; absent while it can.
	LeaseUnreadSince *time.Time `json:"lease_unread_since,omitempty"`
	// LeaseConflict is the stream that the holder of the lease leads where that is
	// another one; absent where it is not.
	LeaseConflict string `json:"lease_conflict,omitempty"`

	Stream       string     `json:"stream"`
	Term         int64      `json:"term,omitempty"`
	Position     string     `json:"position,omitempty"`
	CheckpointAt *time.Time `json:"checkpoint_at,omitempty"`
	// ClaimingSince, HaltedSince, ResumingSince and UnreadSince are since when a leader
	// publishes nothing, since when it waits for an operator, since when the source looks for the place to go on from, and since
	// when nothing can be read, by the process's clock; StillSince since when the source answers and shows nothing newer,
	// not even its time; UnsavedSince since when the state database does not store a checkpoint
	// or a change to be parked. Each is absent otherwise.
	ClaimingSince *time.Time `json:"claiming_since,omitempty"`
	HaltedSince   *time.Time `json:"halted_since,omitempty"`
	// HaltedReason is why it waits, as the metric publisher_halted says it.
	HaltedReason  string     `json:"halted_reason,omitempty"`
	ResumingSince *time.Time `json:"resuming_since,omitempty"`
	UnreadSince   *time.Time `json:"unread_since,omitempty"`
	StillSince    *time.Time `json:"still_since,omitempty"`
	UnsavedSince  *time.Time `json:"unsaved_since,omitempty"`
	// LagSeconds is absent until it is known; on an idle stream it is as much as the
	// source lets pass between two notes of its time, 10 seconds by default.
	LagSeconds *float64 `json:"lag_seconds,omitempty"`
	// WatermarkAt is the time up to which every change is sent or parked, by the
	// source's clock; LagSeconds is its age.
	WatermarkAt *time.Time `json:"watermark_at,omitempty"`

	// Copy is the copy under way; absent while there is none.
	Copy *CopyStatus `json:"copy,omitempty"`
	// Began is where and how the stream began, as known to the leader.
	Began *BeganView `json:"began,omitempty"`
	// GapCounts are how many gaps there are in all, by decision.
	GapCounts map[string]int64 `json:"gap_counts,omitempty"`
	// Gaps are the latest gaps in the stream's history, as known to the leader.
	Gaps []mongostate.Gap `json:"gaps,omitempty"`
	// OplogHeadroomSeconds is how far the stream's place is ahead of the oldest
	// entry of the source's operation log; absent where the role may not read it.
	OplogHeadroomSeconds *float64 `json:"oplog_headroom_seconds,omitempty"`

	Read    int64 `json:"read"`
	Sent    int64 `json:"sent"`
	Passed  int64 `json:"passed"`
	Parked  int64 `json:"parked"`
	Retries int64 `json:"retries"`
	// ParkedSince is since when there are parked changes, as far as this process has
	// seen; absent while there are none.
	ParkedSince *time.Time `json:"parked_since,omitempty"`
	// SentPerSecond is the rate of the last ten seconds.
	SentPerSecond float64 `json:"sent_per_second"`
	InFlight      int     `json:"in_flight"`
	InFlightBytes int64   `json:"in_flight_bytes"`

	Topic string `json:"topic"`
	// OutageSince and OutageClass tell of a time in which nothing can be sent.
	OutageSince *time.Time `json:"outage_since,omitempty"`
	OutageClass string     `json:"outage_class,omitempty"`
	// PacePerSecond is how many messages are sent in a second at most, since the
	// topic has refused more; absent while there is no such bound.
	PacePerSecond *float64 `json:"pace_per_second,omitempty"`
	// Throttled is how many sends the topic has refused for being too many.
	Throttled int64 `json:"throttled"`

	// Troubles are the latest warnings and errors of the log.
	Troubles []admin.Trouble `json:"latest_troubles,omitempty"`
}

// Status is what the tracker shows now.
func (b *Tracker) Status() Status {
	s := b.snapshot()
	status := Status{
		Service:        "publisher",
		Version:        b.version,
		Instance:       b.holder.ID,
		Incarnation:    b.holder.Incarnation,
		Role:           s.election.Role,
		State:          s.state,
		Ready:          s.unready() == nil,
		Lease:          b.config.LeaseName,
		Leader:         s.election.Record.Holder.ID,
		LeaseExpiresAt: KnownTime(s.election.Record.ExpiresAt),
		Takeovers:      s.election.Takeovers,
		RenewFailures:  s.election.RenewFailures,
		Stream:         b.config.StreamName,
		Term:           s.term,
		Position:       s.position,
		CheckpointAt:   KnownTime(b.counters.CheckpointAt()),
		Read:           b.counters.Read(),
		Sent:           b.counters.Sent(),
		Passed:         b.counters.Passed(),
		Parked:         s.parked,
		Retries:        b.counters.Retries(),
		WatermarkAt:    KnownTime(s.upTo),
		ClaimingSince:  KnownTime(s.claiming),
		ResumingSince:  KnownTime(s.resuming),
		UnreadSince:    KnownTime(s.unread),
		StillSince:     KnownTime(s.still),
		UnsavedSince:   KnownTime(s.unsaved),
		HaltedSince:    KnownTime(s.haltedAt),
		ParkedSince:    KnownTime(s.holding),
		LeaseConflict:  s.election.Conflict,
		SentPerSecond:  b.sending.PerSecond(),
		InFlight:       s.relay.InFlight,
		InFlightBytes:  s.relay.InFlightBytes,
		Topic:          b.config.ServiceBusTopic,
		OutageSince:    KnownTime(s.outage.Since),
		Throttled:      b.counters.Failed(relay.Throttled),
	}
	status.LeaseUnreadSince = KnownTime(s.election.FailingSince)
	if status.Role == "" {
		status.Role = lease.Standby // the election has not begun
	}
	if at := status.LeaseExpiresAt; at != nil {
		left := max(time.Until(*at).Seconds(), 0)
		status.LeaseEndsInSeconds = &left
	}
	if s.halted != nil {
		status.HaltedReason = HaltReason(s.halted)
	}
	if s.err != nil {
		status.LastError = b.secrets.Text(s.err.Error())
	}
	if s.outage.Err != nil {
		status.OutageClass = s.outage.Class.String()
	}
	if pace := s.relay.Pace; pace > 0 {
		status.PacePerSecond = &pace
	}
	status.Copy, status.Gaps, status.GapCounts, status.Began = s.copied, s.gaps, s.gapCount, ViewBeginning(s.began)
	if s.headroomKnown {
		headroom := s.headroom.Seconds()
		status.OplogHeadroomSeconds = &headroom
	}
	if s.lagKnown {
		lag := s.lag.Seconds()
		status.LagSeconds = &lag
	}
	return status
}

// KnownTime returns the time, or nil when it is not known.
func KnownTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// BeganView says where and how a stream began.
type BeganView struct {
	// How is START_AT, or adopted where there was a checkpoint before.
	How string     `json:"how"`
	At  *time.Time `json:"at,omitempty"`
	// Skipped says what was not sent; absent where nothing is known to be.
	Skipped string `json:"skipped,omitempty"`
}

// ViewBeginning shows where a stream began; nil where that is not known.
func ViewBeginning(b checkpoint.Beginning) *BeganView {
	if b.How == "" {
		return nil
	}
	view := &BeganView{How: b.How, Skipped: b.Skipped()}
	if at := b.Place.Time(); !at.IsZero() {
		view.At = KnownTime(at.Time())
	}
	return view
}
