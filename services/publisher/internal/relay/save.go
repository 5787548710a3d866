package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"changerelay/services/publisher/internal/checkpoint"
)

const (
	// idleSaveInterval is the least time between saves that only an empty read
	// calls for: they keep the token young, which takes no hurry.
	idleSaveInterval = 10 * time.Second
	// saveTimeout bounds one save, until saves have come to take longer.
	saveTimeout = 3 * time.Second
)

// saveRegularly saves the watermark when it has moved, until settled is closed.
func (r *Relay) saveRegularly(ctx context.Context, settled <-chan struct{}) error {
	ticker := time.NewTicker(r.config.CheckpointInterval)
	defer ticker.Stop()
	var savedAt time.Time
	failing := false
	for {
		select {
		case <-ticker.C:
		case <-settled:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		now := r.watermark.read()
		if now.moves == r.savedMoves || now.idle && time.Since(savedAt) < idleSaveInterval {
			continue
		}
		err := r.save(ctx, now)
		r.saves.note("checkpoint", err)
		switch {
		case err == nil:
			savedAt, failing = time.Now(), false
		case errors.Is(err, checkpoint.ErrSuperseded):
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !failing:
			failing = true
			r.log.Warn().Err(err).Msg("checkpoint not saved, trying again")
		}
	}
}

// saveLast saves the watermark when everything has stopped. ctx may have ended.
func (r *Relay) saveLast(ctx context.Context) error {
	now := r.watermark.read()
	if now.moves == r.savedMoves {
		return nil
	}
	if err := r.save(context.WithoutCancel(ctx), now); err != nil {
		return fmt.Errorf("last save: %w", err)
	}
	return nil
}

func (r *Relay) save(ctx context.Context, now progress) error {
	save, cancel := context.WithTimeout(ctx, r.saving.Bound())
	defer cancel()
	began := time.Now()
	err := r.deps.Checkpoint.Move(save, checkpoint.Place{Token: now.Token, Position: now.Position, Event: now.Event})
	r.saving.Note(time.Since(began), err)
	if err != nil {
		return fmt.Errorf("save the checkpoint: %w", err)
	}
	r.savedMoves = now.moves
	savedAt := time.Now()
	r.deps.Counters.checkpointAt.Store(&savedAt)
	return nil
}
