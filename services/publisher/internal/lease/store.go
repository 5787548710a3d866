package lease

import (
	"context"
	"time"
)

// Holder is one process that holds or wants the lease.
type Holder struct {
	// ID is the instance, the same over its restarts.
	ID string
	// Incarnation is the process, never the same twice.
	Incarnation string
	// Tenure counts the takes of one process. It keeps apart what a process does
	// and what it did: a release that the server makes late must not free the
	// lease that the same process has taken again meanwhile.
	Tenure int64
}

// SameProcess reports whether two holders are one process.
func (h Holder) SameProcess(other Holder) bool {
	return h.ID == other.ID && h.Incarnation == other.Incarnation
}

// Record is the lease as the server had it when it answered.
type Record struct {
	// Holder is zero when the lease was released or never taken.
	Holder Holder
	// Remaining is what was left of the lease by the server's clock; 0 or less
	// when it is over.
	Remaining time.Duration
	// Subject is what the holder leads; empty where it did not say.
	Subject string
	// HeartbeatAt and ExpiresAt are by the server's clock, for people to read.
	HeartbeatAt, ExpiresAt time.Time
}

// Live reports whether somebody held the lease when the server answered.
func (r Record) Live() bool { return r.Holder != Holder{} && r.Remaining > 0 }

// Claim asks for the lease.
type Claim struct {
	Holder Holder
	TTL    time.Duration
	// Subject is written beside the holder, for others to see.
	Subject string
	// OverOwnID also takes a live lease of another incarnation with the same ID.
	OverOwnID bool
}

// Store keeps one lease record. Every change is one atomic step, judged by the
// server's clock and acknowledged by a majority. An error leaves the outcome
// unknown.
type Store interface {
	// Read returns the record; the zero Record when there is none.
	Read(ctx context.Context) (Record, error)
	// Take gives the claim's holder the whole TTL where the lease is free, over,
	// or of a lower tenure of the same process, and else changes nothing. It
	// returns the record that stands afterwards.
	Take(ctx context.Context, claim Claim) (Record, error)
	// Renew gives holder the whole TTL from now and returns the record. Where the
	// record does not name holder it changes nothing, creates nothing, and
	// returns the zero Record.
	Renew(ctx context.Context, holder Holder, ttl time.Duration) (Record, error)
	// Release frees the lease. It returns false, and changes nothing, where the
	// record does not name holder.
	Release(ctx context.Context, holder Holder) (bool, error)
}

// Watcher tells a standby that the record has changed.
type Watcher interface {
	// Watch calls changed once it watches, and again after every change of the
	// record. It blocks until ctx ends or watching fails.
	Watch(ctx context.Context, changed func()) error
}
