package watch

import (
	"context"
	"sync/atomic"
	"time"
)

// How the sessions with messages are counted.
const (
	countEvery = 15 * time.Second
	// mostCounted bounds what one count costs: a page for each hundred.
	mostCounted = 5000
)

// Waiting is how many sessions have messages, as of the last count.
type Waiting struct {
	Count func(ctx context.Context, most int) (int, error)
	// last is the count plus one; 0 is unknown.
	last atomic.Int64
}

// Run counts until ctx ends. A count that fails makes the number unknown.
func (w *Waiting) Run(ctx context.Context) error {
	ticker := time.NewTicker(countEvery)
	defer ticker.Stop()
	for {
		w.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (w *Waiting) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, countEvery)
	defer cancel()
	n, err := w.Count(ctx, mostCounted)
	if err != nil {
		w.last.Store(0)
		return
	}
	w.last.Store(int64(n) + 1)
}

// Sessions is the last count; false until there is one.
func (w *Waiting) Sessions() (int64, bool) {
	last := w.last.Load()
	return last - 1, last > 0
}
