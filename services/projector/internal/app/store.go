package app

import (
	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
)

// readModel is how the store of the read model is built, and what it tells of.
func (a *App) readModel(projections projection.Projections) readmodel.Config {
	store := a.cfg.ReadModel(projections)
	_, store.ParkedBytes = a.cfg.Shares(config.MemoryLimit())
	store.Ended = func(transactions int) {
		a.metrics.TransactionsEnded.Add(int64(transactions))
		a.log.Warn().Int("transactions", transactions).Msg("transactions of projectors that have died were in the way, and are ended")
	}
	store.WentBack = func() {
		a.metrics.WentBack.Add(1)
		a.log.Error().Msg("the read database lacks what this projector had noted in it: it was restored from before, or projector_processes was. " +
			`What was completed since does not come again by itself: docs/operations.md, "The read database restored alone"`)
	}
	return store
}
