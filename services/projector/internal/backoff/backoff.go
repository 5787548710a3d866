// Package backoff spaces out retries: exponentially growing waits with a cap,
// and jitter so that many clients of one failed server do not come back as one.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff gives the waits between the attempts of one operation. It is for one
// goroutine.
type Backoff struct {
	// Initial is the longest first wait.
	Initial time.Duration
	// Max caps every wait.
	Max time.Duration

	current time.Duration
}

// Next returns how long to wait before the next attempt: between half of the
// current step and all of it. Each call doubles the step, up to Max.
func (b *Backoff) Next() time.Duration {
	switch {
	case b.current == 0:
		b.current = min(b.Initial, b.Max)
	case b.current > b.Max/2:
		b.current = b.Max
	default:
		b.current *= 2
	}
	half := b.current / 2
	return half + rand.N(b.current-half+1)
}

// Reset starts over, after a success.
func (b *Backoff) Reset() { b.current = 0 }

// Wait waits for Next, or until ctx ends; then it returns ctx's cause.
func (b *Backoff) Wait(ctx context.Context) error {
	timer := time.NewTimer(b.Next())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
