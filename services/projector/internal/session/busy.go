package session

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// BusyError means that the broker throttles: the same call may succeed after Pause,
// and what is held stays held.
type BusyError struct {
	// Pause is how long the broker asks to wait.
	Pause time.Duration
	Err   error
}

func (e *BusyError) Error() string { return e.Err.Error() }

// Unwrap returns the broker's error.
func (e *BusyError) Unwrap() error { return e.Err }

func asBusy(err error) (*BusyError, bool) { return errors.AsType[*BusyError](err) }

// wait waits out the pause, and up to a quarter more, so that what was throttled
// together does not come back as one. It returns ctx's cause when ctx ends first.
func (e *BusyError) wait(ctx context.Context) error {
	timer := time.NewTimer(e.Pause + rand.N(e.Pause/4+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
