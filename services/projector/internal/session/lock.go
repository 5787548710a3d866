package session

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Why a hold's context ends.
var (
	errLockEnds    = errors.New("the session lock is about to end")
	errLockDoubted = errors.New("the session lock could not be renewed")
	errDrained     = errors.New("the time for draining is over")
	errReleased    = errors.New("the session is given back")
)

// shortestLock is the shortest lock a Service Bus entity can have, and
// longestLock the longest. They stand in where the two clocks plainly disagree.
const (
	shortestLock = 5 * time.Second
	longestLock  = 5 * time.Minute
)

// lock is the local view of a session lock. The goroutine in keep renews it and
// alone moves the deadline; anyone may read it.
type lock struct {
	margin   time.Duration
	deadline atomic.Pointer[time.Time]
	// expire calls the function given to newLock at the deadline, even while a
	// renewal hangs.
	expire *time.Timer
}

// newLock takes over a lock that was just granted; expired is called once its
// deadline passes, until stop.
func newLock(lockedUntil time.Time, margin time.Duration, expired func()) *lock {
	l := &lock{margin: margin}
	l.extend(lockedUntil)
	l.expire = time.AfterFunc(time.Until(*l.deadline.Load()), expired)
	return l
}

// extend moves the deadline to a margin before the lock's end. lockedUntil is
// the broker's clock; an end that lies behind us at the moment of the grant
// shows that the clocks disagree, and then only the shortest lock is sure. Nothing shows
// that the broker's clock is ahead: by more than the lock and the margin, and a renewal
// comes too late.
func (l *lock) extend(lockedUntil time.Time) {
	now := time.Now()
	left := min(lockedUntil.Sub(now), longestLock)
	if left <= 0 {
		left = shortestLock
	}
	deadline := now.Add(left - min(l.margin, left/3))
	l.deadline.Store(&deadline)
}

// end returns the moment at which work on the session must have stopped, or
// errLockEnds when it has come.
func (l *lock) end() (time.Time, error) {
	deadline := *l.deadline.Load()
	if !time.Now().Before(deadline) {
		return deadline, errLockEnds
	}
	return deadline, nil
}

// keep renews the lock half way to its deadline, again and again, until ctx
// ends. It returns the reason why the lock cannot be counted on any more: any
// failed renewal is one, for the client may have attached anew behind it. One that
// is throttled is tried again, for as long as the lock holds.
func (l *lock) keep(ctx context.Context, renew func(context.Context) (time.Time, error)) error {
	defer l.expire.Stop()
	var pause time.Duration
	for {
		deadline, err := l.end()
		if err != nil {
			return err
		}
		half := time.NewTimer(max(time.Until(deadline)/2, min(pause, time.Until(deadline))))
		select {
		case <-ctx.Done():
			half.Stop()
			return context.Cause(ctx)
		case <-half.C:
		}
		pause = 0
		attempt, cancel := context.WithDeadline(ctx, deadline)
		lockedUntil, err := renew(attempt)
		cancel()
		if busy, throttled := asBusy(err); throttled {
			pause = busy.Pause
			continue
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errLockDoubted, err)
		}
		if !l.expire.Stop() {
			return errLockEnds
		}
		l.extend(lockedUntil)
		l.expire.Reset(time.Until(*l.deadline.Load()))
	}
}
