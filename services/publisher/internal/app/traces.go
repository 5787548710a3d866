package app

import (
	"context"
	"time"
)

// flushTimeout bounds the export of the last spans at a stop.
const flushTimeout = 2 * time.Second

// flushTraces exports the last spans, in a small part of the time for a stop.
func (a *App) flushTraces(ctx context.Context) {
	if a.traces == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(flushTimeout, a.config.ShutdownTimeout/10))
	defer cancel()
	if err := a.traces.Shutdown(ctx); err != nil {
		a.log.Info().Err(err).Msg("the last traces are not exported")
	}
}
