package lease

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// ErrLost is the cause with which the led work's context ends when the lease
// can be trusted no longer.
var ErrLost = errors.New("lease lost")

// ErrDisplaced is returned by Run when another process took the lease under
// this instance's own id.
var ErrDisplaced = errors.New("another process uses this instance's id")

// ErrAside is wrapped by what a lead returns that gives the lease up to others. It
// leads again once it is eligible, and nobody else leads.
var ErrAside = errors.New("the lease is left to others")

// Lead is the led work. It does everything under ctx, which ends when the lease
// can be trusted no longer. When tenure.Stopping is closed it finishes what it
// has begun and returns.
type Lead func(ctx context.Context, tenure *Tenure) error

// Tenure is one stretch of holding the lease. Its methods may be called from
// any goroutine.
type Tenure struct {
	stopping <-chan struct{}
	began    time.Time
	trusted  atomic.Int64 // nanoseconds after began, on the monotonic clock
	expiry   *time.Timer  // ends the led work; owned by Run
}

// Stopping is closed when the process was asked to stop.
func (t *Tenure) Stopping() <-chan struct{} { return t.stopping }

// Err returns ErrLost when the lease cannot be trusted at this moment. Ask it
// right before each act that only a leader may do: after a pause of the process
// it knows the truth sooner than any context.
func (t *Tenure) Err() error {
	if time.Since(t.began) >= time.Duration(t.trusted.Load()) {
		return ErrLost
	}
	return nil
}

// Deadline is when the lease can be trusted no longer, unless it is renewed.
func (t *Tenure) Deadline() time.Time { return t.began.Add(time.Duration(t.trusted.Load())) }

// startTenure trusts the lease until deadline, and then calls end.
func startTenure(stopping <-chan struct{}, deadline time.Time, end func()) *Tenure {
	t := &Tenure{stopping: stopping, began: time.Now()}
	t.trusted.Store(int64(deadline.Sub(t.began)))
	t.expiry = time.AfterFunc(time.Until(deadline), end)
	return t
}

// extend trusts the lease until deadline, if that is not earlier than before. It
// returns false when it was too late.
func (t *Tenure) extend(deadline time.Time) bool {
	if deadline.Before(t.Deadline()) {
		return t.Err() == nil
	}
	if !t.expiry.Stop() {
		return false
	}
	t.trusted.Store(int64(deadline.Sub(t.began)))
	t.expiry.Reset(time.Until(deadline))
	return t.Err() == nil
}
