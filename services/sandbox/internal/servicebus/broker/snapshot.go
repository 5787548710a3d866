package broker

import (
	"slices"
	"strings"
	"time"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

// Snapshot is a picture of the namespace for people.
type Snapshot struct {
	At       time.Time      `json:"at"`
	Entities []EntityStatus `json:"entities"`
}

// EntityStatus is one queue, topic or subscription in a Snapshot.
type EntityStatus struct {
	Path        string `json:"path"` // "queue", "topic" or "topic/Subscriptions/name"
	Kind        string `json:"kind"` // "queue", "topic" or "subscription"
	Partitioned bool   `json:"partitioned"`
	// RequiresSession tells a queue or subscription whose messages have sessions.
	RequiresSession bool          `json:"requires_session"`
	Status          entity.Status `json:"status"`
	Counts          entity.Counts `json:"counts"`
	Size            int64         `json:"size_bytes"` // of a queue or topic

	// Totals since the start.
	Received   int64 `json:"received"`   // messages taken in, duplicates not included
	Duplicates int64 `json:"duplicates"` // accepted and dropped, on a queue or topic
	Delivered  int64 `json:"delivered"`
	Completed  int64 `json:"completed"`
	Expired    int64 `json:"expired_locks"`

	Receivers      int             `json:"receivers"`
	Waiting        int             `json:"waiting_accepts"` // for a session
	SessionsReady  int             `json:"sessions_ready"`  // with messages and without a holder
	SessionsLocked int             `json:"sessions_locked"`
	Sessions       []SessionStatus `json:"sessions,omitempty"` // by id, the held ones first, up to SnapshotSessions

	DeadLetters []DeadLetterStatus `json:"dead_letters,omitempty"` // by sequence number, up to SnapshotDeadLetters
}

// SnapshotSessions and SnapshotDeadLetters bound what is listed for one entity.
const (
	SnapshotSessions    = 200
	SnapshotDeadLetters = 20
)

// DeadLetterStatus is one dead letter in a Snapshot.
type DeadLetterStatus struct {
	SequenceNumber int64     `json:"sequence_number"`
	MessageID      string    `json:"message_id,omitempty"`
	SessionID      string    `json:"session_id,omitempty"`
	EnqueuedAt     time.Time `json:"enqueued_at"`
	Reason         string    `json:"reason,omitempty"`
	Description    string    `json:"description,omitempty"`
}

// SessionStatus is one session in a Snapshot.
type SessionStatus struct {
	ID          string    `json:"id"`
	Messages    int       `json:"messages"`
	Locked      bool      `json:"locked"`
	LockedUntil time.Time `json:"locked_until,omitzero"`
	Holder      string    `json:"holder,omitempty"` // the name its receiver gave
}

// Snapshot takes a picture. It holds the broker up for a moment.
func (b *Broker) Snapshot() Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	shot := Snapshot{At: time.Now()}
	for _, in := range b.sorted(false) {
		e := in.outlets[""].status(in)
		e.Kind = "queue"
		e.Received, e.Duplicates, e.Size = in.received, in.duplicates, in.quota.used
		shot.Entities = append(shot.Entities, e)
	}
	for _, in := range b.sorted(true) {
		shot.Entities = append(shot.Entities, EntityStatus{
			Path: in.name, Kind: "topic", Partitioned: in.partitioned, Status: in.status, Counts: in.waiting.counts,
			Size: in.quota.used, Received: in.received, Duplicates: in.duplicates,
		})
		for _, out := range in.inOrder {
			shot.Entities = append(shot.Entities, out.status(in))
		}
	}
	return shot
}

func (o *outlet) status(in *inlet) EntityStatus {
	s := o.store
	e := EntityStatus{
		Path: s.path, Kind: "subscription", Partitioned: in.partitioned, RequiresSession: s.sessions != nil, Status: s.terms.status, Counts: o.counts(),
		Received: s.totals.received, Delivered: s.totals.delivered, Completed: s.totals.completed, Expired: s.totals.expired,
		Receivers: len(s.receivers), Waiting: s.accepts.Len(), SessionsReady: s.ready.Len(),
	}
	for r := range s.receivers {
		if r.session != nil {
			e.SessionsLocked++
			if len(e.Sessions) < SnapshotSessions {
				e.Sessions = append(e.Sessions, r.session.status())
			}
		}
	}
	slices.SortFunc(e.Sessions, bySessionID)
	var ready []SessionStatus
	for _, x := range s.ready.Items[:min(s.ready.Len(), SnapshotSessions-len(e.Sessions))] {
		ready = append(ready, x.status())
	}
	slices.SortFunc(ready, bySessionID)
	e.Sessions = append(e.Sessions, ready...)
	s.dead.bySeq.Ascend(&entry{}, func(dead *entry) bool {
		e.DeadLetters = append(e.DeadLetters, dead.deadLetterStatus())
		return len(e.DeadLetters) < SnapshotDeadLetters
	})
	return e
}

func (e *entry) deadLetterStatus() DeadLetterStatus {
	d := DeadLetterStatus{SequenceNumber: e.seq, MessageID: e.msg.MessageID, EnqueuedAt: e.enqueuedAt}
	if e.msg.SessionID != nil {
		d.SessionID = *e.msg.SessionID
	}
	if e.marks != nil {
		d.Reason, d.Description = e.marks.deadReason, e.marks.deadDescription
	}
	return d
}

func bySessionID(a, b SessionStatus) int { return strings.Compare(a.ID, b.ID) }

func (x *session) status() SessionStatus {
	status := SessionStatus{ID: x.id, Messages: x.messages, Locked: x.holder != nil}
	if x.holder != nil {
		status.LockedUntil, status.Holder = x.lockedUntil, x.holder.name
	}
	return status
}
