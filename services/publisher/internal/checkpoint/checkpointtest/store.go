// Package checkpointtest has a checkpoint store in memory that misbehaves on
// request, and the suite that every checkpoint store must pass.
package checkpointtest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"changerelay/services/publisher/internal/checkpoint"
)

// ErrInjected is a fault's usual error.
var ErrInjected = errors.New("injected fault")

// Store is a checkpoint.Store in memory. The zero Store is ready.
type Store struct {
	// Fault is asked before each call; a non-nil error is returned instead of the
	// answer, and applied tells whether the change is made all the same.
	Fault func(op string) (err error, applied bool)

	mu      sync.Mutex
	streams map[string]*state                // guarded by mu
	history map[string][]checkpoint.Progress // guarded by mu
	claims  int                              // guarded by mu
}

type state struct{ checkpoint.Checkpoint }

// Claim implements checkpoint.Store.
func (s *Store) Claim(ctx context.Context, stream string, by checkpoint.Claimant) (checkpoint.Checkpoint, error) {
	var found checkpoint.Checkpoint
	err := s.call(ctx, "claim", func() error {
		if s.streams == nil {
			s.streams = map[string]*state{}
		}
		if s.streams[stream] == nil {
			if !by.Create {
				return checkpoint.ErrMissing
			}
			s.streams[stream] = &state{Checkpoint: checkpoint.Checkpoint{Stream: stream}}
		}
		s.claims++
		held := s.streams[stream]
		held.Term = max(held.Term, by.Above) + 1
		held.Claim, held.Saves = strconv.Itoa(s.claims), 0
		found = s.streams[stream].Checkpoint
		return nil
	})
	return found, err
}

// Pin implements checkpoint.Store.
func (s *Store) Pin(ctx context.Context, stream string, term int64, start checkpoint.Place) (checkpoint.Checkpoint, error) {
	var found checkpoint.Checkpoint
	err := s.call(ctx, "pin", func() error {
		held := s.streams[stream]
		if held == nil || held.Term != term {
			return checkpoint.ErrSuperseded
		}
		if !held.Pinned() {
			held.Place = start
		}
		found = held.Checkpoint
		return nil
	})
	return found, err
}

// Save implements checkpoint.Store.
func (s *Store) Save(ctx context.Context, stream string, term int64, progress checkpoint.Progress) error {
	return s.call(ctx, "save", func() error {
		held := s.streams[stream]
		if held == nil || held.Term != term || progress.Claim != "" && progress.Claim != held.Claim || held.Saves < progress.Behind {
			return checkpoint.ErrSuperseded
		}
		if progress.Number <= held.Saves {
			return nil
		}
		held.Saves = progress.Number
		if progress.Mark {
			if progress.Aside != nil {
				held.Aside = progress.Aside
			}
			held.Names = progress.Naming.Of(held.Names)
			return nil
		}
		held.Place, held.Options, held.UpdatedAt = progress.Place, progress.Options, time.Now()
		held.Token = slices.Clone(progress.Token)
		if progress.Moved != "" {
			held.Moved = progress.Moved
		}
		if s.history == nil {
			s.history = map[string][]checkpoint.Progress{}
		}
		s.history[stream] = append(s.history[stream], progress)
		return nil
	})
}

// Current returns a stream's checkpoint.
func (s *Store) Current(stream string) checkpoint.Checkpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams[stream] == nil {
		return checkpoint.Checkpoint{}
	}
	return s.streams[stream].Checkpoint
}

// Saves returns the saves that were made, in order.
func (s *Store) Saves(stream string) []checkpoint.Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.history[stream])
}

func (s *Store) call(ctx context.Context, op string, step func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Fault != nil {
		if err, applied := s.Fault(op); err != nil {
			if applied {
				_ = step()
			}
			return err
		}
	}
	return step()
}
