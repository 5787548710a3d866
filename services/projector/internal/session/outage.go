package session

import (
	"sync"
	"time"
)

// Outage follows the failures of one dependency, so that many slots that fail together
// make one line in the log. The zero value means that all is well.
type Outage struct {
	mu      sync.Mutex
	err     error     // guarded by mu
	since   time.Time // guarded by mu
	last    error     // guarded by mu: also of a throttled call, in an outage or not
	refused time.Time // guarded by mu: since when all that is answered is throttled; zero for not
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

// throttledTime is how long a dependency may throttle all that is asked of it before that is
// an outage. Near its limits it refuses some of what it is asked, beside what it does.
const throttledTime = 30 * time.Second

// Throttled notes a call that the dependency refused for being too much, and tells whether it
// is the first after a success. It is an outage, from the first refusal on, once nothing but
// refusals has come for throttledTime.
func (o *Outage) Throttled(err error) (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	first = o.err == nil && o.refused.IsZero()
	if o.refused.IsZero() {
		o.refused = time.Now()
	}
	o.last = err
	switch {
	case o.err != nil:
		o.err = err
	case time.Since(o.refused) >= throttledTime:
		o.err, o.since = err, o.refused
	}
	return first
}

// Recovered notes a success and tells how long it was refused or failed before, if it was.
func (o *Outage) Recovered() (lasted time.Duration, ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	since := o.refused
	if o.err != nil {
		since = o.since
	}
	o.err, o.refused = nil, time.Time{}
	if since.IsZero() {
		return 0, false
	}
	return time.Since(since), true
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

// Last is the last failure, or call that was throttled, or nil.
func (o *Outage) Last() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}
