package watch

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
	parkedEvery = 30 * time.Second
	parkedTime  = 20 * time.Second
)

// ParkedWatch looks at what is parked in the group. Where a halt was deleted or is not in
// a backup, alone or with what was parked under it, what follows is being applied over
// that: it puts the halt back. Where messages are gone that were parked under a
// halt, it says so. It counts what was skipped.
type ParkedWatch struct {
	Log zerolog.Logger

	parked  atomic.Int64 // plus one; 0 is unknown
	skipped atomic.Int64 // so, too
	Gone    atomic.Int64
	PutBack atomic.Int64
}

// Run looks until ctx ends.
func (w *ParkedWatch) Run(ctx context.Context, store *readmodel.Store) error {
	ticker := time.NewTicker(parkedEvery)
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

func (w *ParkedWatch) look(ctx context.Context, store *readmodel.Store) {
	attempt, cancel := context.WithTimeout(ctx, parkedTime)
	defer cancel()
	halted, err := delivery.Rehalt(attempt, store.Parked, store.Parking, false)
	for _, aggregate := range halted {
		w.PutBack.Add(1)
		w.Log.Error().Str("aggregate_id", aggregate).
			Msg("messages were parked and their halt is gone, later events may have been applied over them; the halt is put back, see projector parked redrive")
	}
	if err == nil {
		err = store.Halts.NoteHalts(attempt)
	}
	if err != nil && ctx.Err() == nil {
		w.Log.Warn().Err(err).Msg("what is parked cannot be looked at, a lost halt goes unseen")
	}
	w.lookForGone(ctx, attempt, store)
	keep(&w.parked)(store.Parked.CountParked(attempt))
	keep(&w.skipped)(store.Skipped.Count(attempt))
}

// keep keeps a count, or that it is unknown.
func keep(in *atomic.Int64) func(n int64, err error) {
	return func(n int64, err error) {
		if err != nil {
			n = -1
		}
		in.Store(n + 1)
	}
}

// lookForGone counts the parked messages that are missing, and names their aggregates
// when that changes.
func (w *ParkedWatch) lookForGone(ctx, attempt context.Context, store *readmodel.Store) {
	gone, err := store.Parked.Gone(attempt)
	if err != nil {
		if ctx.Err() == nil {
			w.Log.Warn().Err(err).Msg("what is parked cannot be counted, lost messages go unseen")
		}
		return
	}
	n := gone.Messages()
	if before := w.Gone.Swap(n); n > 0 && n != before {
		w.Log.Error().Int64("messages", n).Strs("aggregate_ids", gone.First()).
			Msg("messages that were parked are gone, and nobody has redriven or discarded them: restore parked_messages, see projector parked list")
	}
}

// Messages is how many are parked; nil until that is known.
func (w *ParkedWatch) Messages() *int64 { return kept(&w.parked) }

// Skipped is how many skipped events there are records of; nil until that is known.
func (w *ParkedWatch) Skipped() *int64 { return kept(&w.skipped) }

func kept(in *atomic.Int64) *int64 {
	n := in.Load() - 1
	if n < 0 {
		return nil
	}
	return &n
}
