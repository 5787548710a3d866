package app

import (
	"context"
	"errors"
	"fmt"

	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/session"
)

// heard has a handler apply nothing while the process cannot say that it lives: others
// may take it for dead, and what it writes for their own.
type heard struct {
	session.Handler
	process *readmodel.Process
}

// Hold implements session.Handler.
func (h heard) Hold(sessionID string) session.Applier {
	return heardHold{h.Handler.Hold(sessionID), h.process}
}

type heardHold struct {
	session.Applier
	process *readmodel.Process
}

// Apply implements session.Applier.
func (h heardHold) Apply(ctx context.Context, messages []session.Message) ([]session.Verdict, error) {
	if err := h.process.Silent(); err != nil {
		return nil, fmt.Errorf("%w: %w", err, session.ErrPaused)
	}
	within, end := h.process.WhileHeard(ctx)
	defer end()
	verdicts, err := h.Applier.Apply(within, messages)
	if err != nil && errors.Is(context.Cause(within), readmodel.ErrSilent) {
		err = fmt.Errorf("%w: %w", readmodel.ErrSilent, session.ErrPaused)
	}
	return verdicts, err
}

// paused tells that no more sessions are to be taken.
func (a *App) paused() bool { return a.brake.On() || a.process.Silent() != nil }

// belongs tells, after a silence, whether what the projector writes is still its own, and
// all that it has to write: nobody has waited for it to work by what rebuilds have decided.
func (a *App) belongs(ctx context.Context) error {
	if err := a.store.CheckOwner(ctx, a.collections); err != nil {
		return err
	}
	return a.checkRecords(ctx)
}

// beaten is told how each attempt went to say that the process lives.
func (a *App) beaten(err error) {
	if err != nil {
		if a.beats.Failed(err) {
			a.log.Warn().Err(err).Msg("the process cannot say that it lives; it applies nothing before others take it for dead")
		}
		return
	}
	a.engine.Answers()
	if lasted, ended := a.beats.Recovered(); ended {
		a.log.Info().Dur("lasted_ms", lasted).Msg("the process says that it lives")
	}
}
