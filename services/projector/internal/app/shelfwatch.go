package app

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/readmodel"
)

// How what is parked is looked at.
const (
	shelfEvery = 30 * time.Second
	shelfTime  = 20 * time.Second
)

// shelfWatch looks at what is parked in the group. Where messages are parked without
// a halt, because it was deleted or is not in a backup, what follows is being applied
// over them: it puts the halt back.
type shelfWatch struct {
	log zerolog.Logger

	parked  atomic.Int64 // plus one; 0 is unknown
	putBack atomic.Int64
}

// run looks until ctx ends.
func (w *shelfWatch) run(ctx context.Context, store *readmodel.Store) error {
	ticker := time.NewTicker(shelfEvery)
	defer ticker.Stop()
	for {
		w.look(ctx, store)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (w *shelfWatch) look(ctx context.Context, store *readmodel.Store) {
	attempt, cancel := context.WithTimeout(ctx, shelfTime)
	defer cancel()
	halted, err := delivery.Rehalt(attempt, store, store, false)
	for _, aggregate := range halted {
		w.putBack.Add(1)
		w.log.Error().Str("aggregate_id", aggregate).
			Msg("messages are parked and their halt is gone, later events may have been applied over them; the halt is put back, see projector parked redrive")
	}
	if err != nil && ctx.Err() == nil {
		w.log.Warn().Err(err).Msg("what is parked cannot be looked at, a lost halt goes unseen")
	}
	n, err := store.CountParked(attempt)
	if err != nil {
		w.parked.Store(0)
		return
	}
	w.parked.Store(n + 1)
}

// messages is how many are parked; nil until that is known.
func (w *shelfWatch) messages() *int64 {
	n := w.parked.Load() - 1
	if n < 0 {
		return nil
	}
	return &n
}
