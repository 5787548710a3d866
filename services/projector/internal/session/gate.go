package session

import (
	"context"
	"sync"
)

// gate bounds how many accepts wait at once. It opens while sessions come, so
// that a backlog is met with every slot, and closes to its floor while none do,
// so that an idle projector leaves the broker alone.
type gate struct {
	tokens chan struct{}
	floor  int

	mu    sync.Mutex
	limit int // guarded by mu: tokens in the channel plus tokens taken
}

func newGate(floor, limit int) *gate {
	g := &gate{tokens: make(chan struct{}, limit), floor: min(floor, limit)}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.grow(g.floor)
	return g
}

// enter waits for leave to accept; false when ctx ended first.
func (g *gate) enter(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-g.tokens:
		return ctx.Err() == nil
	}
}

// leave ends an accept. One that found a session lets one more in besides the
// next, up to the limit; one that found none lets no successor in, down to the floor.
func (g *gate) leave(found bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case found:
		g.tokens <- struct{}{}
		g.grow(1)
	case g.limit > g.floor:
		g.limit--
	default:
		g.tokens <- struct{}{}
	}
}

// grow adds n tokens, as far as there is room. Called with mu held.
func (g *gate) grow(n int) {
	for range min(n, cap(g.tokens)-g.limit) {
		g.limit++
		g.tokens <- struct{}{}
	}
}
