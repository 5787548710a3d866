package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/mongostate"
)

// errCopyTooSlow is why a copy is not made a second time by itself.
var errCopyTooSlow = errors.New("the copy took longer than the operation log reaches back: enlarge the log, or raise SNAPSHOT_RATE")

// lost reports whether a stream ended because the source can not show what
// comes next, which ON_HISTORY_LOST decides about.
func lost(err error) bool {
	halt, ok := errors.AsType[*changestream.HaltError](err)
	if !ok {
		return false
	}
	switch halt.Reason {
	case changestream.HistoryLost, changestream.TokenUnusable, changestream.ChangeTooLarge:
		return true
	default:
		return false
	}
}

// decide does what ON_HISTORY_LOST says, after it has written that down. It
// returns why when that is to stop.
func (t *term) decide(ctx context.Context, why error) error {
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	decision := t.config.OnHistoryLost
	if t.claimed.Copy != nil {
		decision, why = decideStop, fmt.Errorf("%w: %w", errCopyTooSlow, why)
	}
	from, to, err := t.placeAfter(attempt, decision)
	if err != nil {
		return fmt.Errorf("decide where to go on: %w", err)
	}
	gap := mongostate.Gap{
		Stream:   t.config.StreamName,
		From:     string(t.claimed.Position),
		FromTime: from.Time(),
		Cause:    haltReason(why),
		Error:    t.secrets.Text(why.Error()),
		Decision: decision,
		At:       time.Now(),
		Instance: t.config.InstanceID,
		Term:     t.claimed.Term,
	}
	if to != nil {
		gap.ToTime = to.Start.Time()
	}
	if err := t.state.Gaps(t.config.StreamName).Enter(attempt, gap); err != nil {
		return err
	}
	t.board.gapsAre(t.readGaps(ctx))
	if to == nil {
		return why
	}
	t.log.Error().Err(why).Str("decision", decision).Time("from", gap.FromTime).Time("to", gap.ToTime).
		Msg("the source can not show what comes next, going on as ON_HISTORY_LOST says")
	return t.claimed.Move(attempt, *to)
}

// placeAfter returns the time up to which everything is published, and where a
// decision goes on; nil for not at all.
func (t *term) placeAfter(ctx context.Context, decision string) (checkpoint.ClusterTime, *checkpoint.Place, error) {
	from := t.claimed.Start
	if seconds, increment, err := t.claimed.Position.ClusterTime(); err == nil {
		from = checkpoint.ClusterTime{Seconds: seconds, Increment: increment}
	}
	var to checkpoint.Place
	var err error
	switch decision {
	case decideHeal:
		to, err = t.newCopy(ctx, decideHeal, from.Time().Add(-t.config.HealMargin))
	case decideSnapshot:
		to, err = t.newCopy(ctx, decideSnapshot, time.Time{})
	case decideNow:
		to.Start, err = changestream.Now(ctx, t.source)
	default:
		return from, nil, nil
	}
	return from, &to, err
}

// readGaps returns the latest gaps, for people.
func (a *App) readGaps(ctx context.Context) []mongostate.Gap {
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	found, err := a.state.Gaps(a.config.StreamName).Latest(attempt)
	if err != nil {
		a.log.Warn().Err(err).Msg("gaps not read")
	}
	return found
}
