package lease

import (
	"fmt"
	"time"
)

// heartbeatJitter is the part of a heartbeat by which one may come later, so
// that instances started together do not stay in step.
const heartbeatJitter = 0.1

// Config says who elects, and with which times.
type Config struct {
	// Name names the lease in logs and errors.
	Name   string
	Holder Holder
	// Subject is what is led. A lease whose holder leads something else is waited
	// for like any other, but the State says so: one name is used for two things.
	Subject string
	// OwnIDUnique promises that no two live processes share Holder.ID. Then a
	// process that finds a live lease under its own ID knows the holder is dead,
	// and takes over at once.
	OwnIDUnique bool
	// TTL is how long a lease lasts on the server after a renewal.
	TTL time.Duration
	// RenewDeadline is how long the leader trusts its lease after it sent the
	// last renewal that succeeded.
	RenewDeadline time.Duration
	// Heartbeat is the time between renewals.
	Heartbeat time.Duration
	// Eligible says whether this process may take the lease now; nil is always. One
	// that may not watches, and leaves it to others.
	Eligible func() bool
}

// Check returns what is wrong with the times, or nil: a leader must be able to
// miss a renewal and still stop before its lease is over.
func (c Config) Check() error {
	switch {
	case c.Heartbeat <= 0:
		return fmt.Errorf("heartbeat %s is not above 0", c.Heartbeat)
	case c.RenewDeadline <= c.latestHeartbeat():
		return fmt.Errorf("renewal deadline %s is not above the heartbeat with its jitter, %s", c.RenewDeadline, c.latestHeartbeat())
	case c.TTL <= c.RenewDeadline:
		return fmt.Errorf("lease %s is not above the renewal deadline %s", c.TTL, c.RenewDeadline)
	}
	return nil
}

func (c Config) latestHeartbeat() time.Duration {
	return c.Heartbeat + time.Duration(heartbeatJitter*float64(c.Heartbeat))
}

// Longest is how long one call to the store may take at most: the time that a leader
// has from its latest heartbeat to its deadline. A lease that takes longer to renew
// cannot be kept.
func (c Config) Longest() time.Duration { return c.RenewDeadline - c.latestHeartbeat() }

// attempt is how long one call may take that is answered as soon as usual: a third of
// the longest leaves room for more.
func (c Config) attempt() time.Duration { return c.Longest() / 3 }

// retry is the pause after a failed call of a standby, and between its reads
// where no watch tells of changes.
func (c Config) retry() time.Duration { return c.Heartbeat / 5 }

// renewRetry is the longest pause after a failed renewal.
func (c Config) renewRetry() time.Duration { return c.attempt() / 6 }
