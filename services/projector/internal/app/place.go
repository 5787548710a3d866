package app

import (
	"context"
	"errors"
	"time"

	"changerelay/services/projector/internal/readmodel"
)

// keepPlace looks into the ledger until ctx ends, or until what the projector writes is another's:
// one that stood still while it was moved must not go on. Nor must one whose positions are lost, which
// nobody can note again. What is lost of what else it had noted it notes again.
func (a *App) keepPlace(ctx context.Context) error {
	ticker := time.NewTicker(a.lookEvery)
	defer ticker.Stop()
	for {
		a.ledger.Look(ctx, a.store)
		a.verified.Look(ctx, a.store)
		if err := a.metrics.Look(ctx, a.store); err != nil && ctx.Err() == nil {
			a.log.Warn().Err(err).Msg("which projections halt aggregates would go unseen")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		again, err := a.store.Keep(ctx, a.collections, a.cfg.InstanceID)
		if errors.Is(err, readmodel.ErrElsewhere) {
			return err
		}
		if again != "" {
			a.log.Warn().Str("noted", again).Msg("notes of whose the read collections are were lost, or restored from before, and are made again")
		}
		if err := a.checkPositions(ctx); errors.Is(err, readmodel.ErrPositionsLost) {
			return err
		}
		if err := a.emptied.Look(ctx, a.store); err != nil && ctx.Err() == nil {
			a.log.Warn().Err(err).Msg("an emptied read collection would go unseen")
		}
		if err := a.lacks.Look(ctx, a.store); err != nil && ctx.Err() == nil {
			a.log.Warn().Err(err).Msg("aggregates that lack what was resent would go unseen")
		}
	}
}

// checkPositions looks whether positions are lost, and warns, once, of each document
// that may tell it and proves nothing.
func (a *App) checkPositions(ctx context.Context) error {
	single, err := a.store.Writes.CheckPositions(ctx)
	for _, document := range single {
		if !a.warned[document] {
			a.warned[document] = true
			a.log.Warn().Str("problem", document).Msg("a document shows an event that no position tells of: it is none of a projector's, or its position is lost")
		}
	}
	return err
}
