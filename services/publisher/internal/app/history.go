package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/mongostate"
)

// errCopyTooSlow is why a copy is not made a second time by itself.
var errCopyTooSlow = errors.New("the copy took longer than the operation log reaches back: enlarge the log, or raise SNAPSHOT_RATE")

// lost reports whether a stream ended because the source cannot show what
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
	if copyTooSlow(t.claimed.Place, why) {
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
	ledger, name := t.state.Gaps(t.config.StreamName), bson.NewObjectID().Hex()
	if to == nil {
		if err := ledger.Enter(attempt, gap); err != nil {
			return err
		}
		t.readLedger(ctx)
		return why
	}
	gap.ToTime = to.Start.Time()
	if err := ledger.Announce(attempt, gap, name); err != nil {
		return err
	}
	t.log.Error().Err(why).Str("decision", decision).Time("from", gap.FromTime).Time("to", gap.ToTime).
		Msg("the source cannot show what comes next, going on as ON_HISTORY_LOST says")
	if err := t.claimed.MoveAs(attempt, name, *to); err != nil {
		return err
	}
	err = t.state.Settle(attempt, t.config.StreamName, name, t.claimed.Term)
	t.readLedger(ctx)
	return err
}

// copyTooSlow reports whether the history is lost of the time at which a copy
// began that was made, and nothing read of the stream after it. Any other reason
// is none of the copy's.
func copyTooSlow(place checkpoint.Place, why error) bool {
	halt, ok := errors.AsType[*changestream.HaltError](why)
	return ok && halt.Reason == changestream.HistoryLost && place.Token == nil && place.Copy != nil && place.Copy.Done
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

// ledger is that of the stream, or of the partition.
func (a *App) ledger() *mongostate.Gaps {
	return a.state.Ledger(a.parkedAs, a.config.Partitions, a.index)
}

// readLedger shows the gaps of the ledger to people.
func (a *App) readLedger(ctx context.Context) {
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	ledger := a.ledger()
	latest, err := ledger.Latest(attempt)
	counts, countErr := ledger.Counts(attempt)
	if err = errors.Join(err, countErr); err != nil {
		a.log.Warn().Err(err).Msg("gaps not read")
		return
	}
	a.board.gapsAre(latest, counts)
}
