package session

import (
	"context"
	"sync"
)

// acceptLimiter bounds how many accepts wait at once. It opens while sessions come, so
// that a backlog is met with every slot, and closes to its floor while none do,
// so that an idle projector leaves the broker alone.
type acceptLimiter struct {
	tokens chan struct{}
	floor  int

	mu    sync.Mutex
	limit int // guarded by mu: tokens in the channel plus tokens taken
}

func newAcceptLimiter(floor, limit int) *acceptLimiter {
	l := &acceptLimiter{tokens: make(chan struct{}, limit), floor: min(floor, limit)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grow(l.floor)
	return l
}

// enter waits for leave to accept; false when ctx ended first.
func (l *acceptLimiter) enter(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-l.tokens:
		return ctx.Err() == nil
	}
}

// leave ends an accept. One that found a session lets one more in besides the
// next, up to the limit; one that found none lets no successor in, down to the floor.
func (l *acceptLimiter) leave(found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case found:
		l.tokens <- struct{}{}
		l.grow(1)
	case l.limit > l.floor:
		l.limit--
	default:
		l.tokens <- struct{}{}
	}
}

// grow adds n tokens, as far as there is room. Called with mu held.
func (l *acceptLimiter) grow(n int) {
	for range min(n, cap(l.tokens)-l.limit) {
		l.limit++
		l.tokens <- struct{}{}
	}
}
