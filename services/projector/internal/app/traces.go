package app

import (
	"context"
)

// flushTraces exports the last spans until ctx ends.
func (a *App) flushTraces(ctx context.Context) {
	if a.traces == nil {
		return
	}
	if err := a.traces.Shutdown(ctx); err != nil {
		a.log.Info().Err(err).Msg("the last traces are not exported")
	}
}
