package session

import (
	"sync"
	"time"
)

// Outage follows the failures of one dependency, so that many slots that fail together
// make one line in the log. The zero value means that all is well.
type Outage struct {
	mu    sync.Mutex
	err   error     // guarded by mu
	since time.Time // guarded by mu
	last  error     // guarded by mu: of this outage or the one before
}

// Failed notes a failure and tells whether it is the first of its outage.
func (o *Outage) Failed(err error) (first bool) { return o.FailedSince(err, time.Now()) }

// FailedSince is Failed for a dependency that has answered nothing since a moment.
func (o *Outage) FailedSince(err error, since time.Time) (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	first = o.err == nil
	if first {
		o.since = since
	}
	o.err, o.last = err, err
	return first
}

// Recovered notes a success and tells how long the outage was that it ends, if any.
func (o *Outage) Recovered() (lasted time.Duration, ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		return 0, false
	}
	o.err = nil
	return time.Since(o.since), true
}

// Since is when the outage that goes on began; zero where there is none.
func (o *Outage) Since() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		return time.Time{}
	}
	return o.since
}

// Current is the last failure of an outage that goes on, or nil.
func (o *Outage) Current() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// Last is the last failure of this outage or of the last one, or nil.
func (o *Outage) Last() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}
