package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/status"
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
	attempt, cancel := context.WithTimeout(ctx, config.AttemptTimeout)
	defer cancel()
	decision := t.config.OnHistoryLost
	if copyTooSlow(t.claimed.Place, why) {
		decision, why = config.DecideStop, fmt.Errorf("%w: %w", errCopyTooSlow, why)
	}
	from, to, err := t.placeAfter(attempt, decision)
	if err != nil {
		return fmt.Errorf("decide where to go on: %w", err)
	}
	gap := mongostate.Gap{
		Stream:   t.config.StreamName,
		From:     string(t.claimed.Position),
		FromTime: from.Time(),
		Cause:    status.HaltReason(why),
		Error:    t.Secrets.Text(why.Error()),
		Decision: decision,
		At:       time.Now(),
		Instance: t.config.InstanceID,
		Term:     t.claimed.Term,
	}
	ledger, name := t.State.Gaps(t.config.StreamName), bson.NewObjectID().Hex()
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
	err = t.State.Settle(attempt, t.config.StreamName, name, t.claimed.Term)
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
	case config.DecideHeal:
		to, err = t.newCopy(ctx, config.DecideHeal, from.Time().Add(-t.config.HealMargin))
	case config.DecideSnapshot:
		to, err = t.newCopy(ctx, config.DecideSnapshot, time.Time{})
	case config.DecideNow:
		to.Start, err = changestream.Now(ctx, t.Source)
	default:
		return from, nil, nil
	}
	return from, &to, err
}

// ledger is that of the stream, or of the partition.
func (s *Stream) ledger() *mongostate.Gaps {
	return s.State.Ledger(s.whole, s.config.Partitions, s.index)
}

// readLedger shows the gaps of the ledger to people.
func (s *Stream) readLedger(ctx context.Context) {
	attempt, cancel := context.WithTimeout(ctx, config.AttemptTimeout)
	defer cancel()
	ledger := s.ledger()
	latest, err := ledger.Latest(attempt)
	counts, countErr := ledger.Counts(attempt)
	if err = errors.Join(err, countErr); err != nil {
		s.log.Warn().Err(err).Msg("gaps not read")
		return
	}
	s.tracker.GapsAre(latest, counts)
}
