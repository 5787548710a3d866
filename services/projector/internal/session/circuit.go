package session

import (
	"context"
	"sync"
	"time"

	"changerelay/services/projector/internal/backoff"
)

// circuit is a circuit breaker for accepts. It is closed while they are answered.
// While they fail, one at a time probes, after a pause that grows: many slots that
// fail together ask as often as one.
type circuit struct {
	// turn holds the place for the one that probes.
	turn chan struct{}

	mu     sync.Mutex
	open   bool            // guarded by mu
	wait   backoff.Backoff // guarded by mu
	advice time.Duration   // guarded by mu: the least pause before the next probe
	last   time.Time       // guarded by mu: when an accept was last answered
}

func newCircuit(initial, most time.Duration) *circuit {
	return &circuit{turn: make(chan struct{}, 1), wait: backoff.Backoff{Initial: initial, Max: most}}
}

// enter waits until an accept may be tried; false when ctx ended first. done is
// called when it has ended.
func (c *circuit) enter(ctx context.Context) (done func(), ok bool) {
	if !c.isOpen() {
		return func() {}, true
	}
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, false
	}
	leave := func() { <-c.turn }
	if !c.isOpen() {
		leave()
		return func() {}, true
	}
	timer := time.NewTimer(c.pause())
	defer timer.Stop()
	select {
	case <-timer.C:
		return leave, true
	case <-ctx.Done():
		leave()
		return nil, false
	}
}

func (c *circuit) isOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

// pause is how long the next probe waits.
func (c *circuit) pause() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.wait.Next(), c.advice)
}

// failed opens the circuit. One that is throttled at the end of a window, in which
// others were answered, does not: they go on in the next.
func (c *circuit) failed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	busy, throttled := asBusy(err)
	if throttled && !c.open && time.Since(c.last) < window {
		return
	}
	c.open, c.advice = true, 0
	if throttled {
		c.advice = busy.Pause
	}
}

// answered closes it.
func (c *circuit) answered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open, c.advice, c.last = false, 0, time.Now()
	c.wait.Reset()
}
