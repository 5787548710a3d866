package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/mongostate"
)

// Values of ON_COLLECTION_CHANGE; report is a decision in the ledger, too.
const (
	stopReplaced  = "stop-replaced"
	stopChanged   = "stop"
	reportChanged = "report"
)

// changed writes down that something happened to a collection as a whole, and
// stops the stream before it where ON_COLLECTION_CHANGE says so. The stream
// calls it before the change is handed out, so before a checkpoint passes it.
func (t *term) changed(ctx context.Context, c changestream.CollectionChange) error {
	if !t.record.Stopped.Before(c.At) && !t.record.Accepted.Before(c.At) {
		t.log.Info().Str("change", c.String()).Msg("change to a collection passed, an operator has accepted it")
		return nil
	}
	replaces := c.Replaces(t.config.collections())
	stop := t.config.OnCollectionChange == stopChanged || replaces && t.config.OnCollectionChange == stopReplaced
	gap := mongostate.Gap{
		From: string(c.Position), FromTime: c.At.Time(), Cause: string(changestream.CollectionChanged), Error: c.String(),
		Decision: reportChanged, At: time.Now(), Instance: t.config.InstanceID, Term: t.claimed.Term,
	}
	if replaces {
		gap.Cause = string(changestream.CollectionReplaced)
		gap.Error += ": its documents never pass the stream"
	}
	switch {
	case !t.record.Accepted.Before(c.At): // with the collection as it was found
		gap.Decision, gap.ToTime, stop = moveAccept, c.At.Time(), false
	case stop:
		gap.Decision = decideStop
	default:
		gap.ToTime = c.At.Time()
	}
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	if err := t.state.Gaps(t.config.StreamName).Enter(attempt, gap); err != nil {
		return err
	}
	t.readLedger(attempt)
	if stop {
		if err := t.state.Streams().Stop(attempt, t.config.StreamName, c.At); err != nil {
			return err
		}
		return halt(changestream.Reason(gap.Cause), "%s", gap.Error)
	}
	t.log.Error().Str("change", gap.Error).Msg("a collection was changed as a whole, going on as ON_COLLECTION_CHANGE says")
	return t.forget(attempt, c)
}

// forget lets the ids of the changed collections be found anew.
func (t *term) forget(ctx context.Context, c changestream.CollectionChange) error {
	t.learning.Lock()
	defer t.learning.Unlock()
	for name := range t.record.Source.Collections {
		if c.Concerns(name) {
			delete(t.record.Source.Collections, name)
		}
	}
	return t.state.Streams().Source(ctx, t.config.StreamName, t.claimed.Term, t.record.Source)
}

// learn finds the ids of collections that had none when the term began: they were
// made since. It belongs to the leader.
func (a *App) learn(ctx context.Context) {
	a.learning.Lock()
	defer a.learning.Unlock()
	known := a.record.Source.Collections
	unknown := slices.DeleteFunc(slices.Clone(a.config.collections()), func(name string) bool { return known[name] != "" })
	if len(unknown) == 0 && (a.config.collections() != nil || len(known) > 0) {
		return
	}
	now, err := a.config.stream(a.source).Identify(ctx)
	if err != nil {
		a.log.Debug().Err(err).Msg("ids of the collections not seen")
		return
	}
	var learned []string
	for name, id := range now.Collections {
		if known[name] == "" {
			known[name] = id
			learned = append(learned, name)
		}
	}
	if len(learned) == 0 {
		return
	}
	if err := a.state.Streams().Source(ctx, a.config.StreamName, a.knows.highest(), a.record.Source); err != nil {
		a.log.Debug().Err(err).Msg("ids of the collections not kept")
		for _, name := range learned {
			delete(known, name) // and seen again
		}
	}
}

// replaced is what is done when a collection is another one than it was, which
// the stream may not have shown.
func (a *App) replaced(ctx context.Context, record checkpoint.Record, place checkpoint.Place, what string) error {
	gap := mongostate.Gap{
		From: string(place.Position), FromTime: place.Time().Time(), Cause: string(changestream.CollectionReplaced), Error: what,
		Decision: decideStop, At: time.Now(), Instance: a.config.InstanceID, Term: record.Confirmed,
	}
	if a.config.OnCollectionChange == reportChanged {
		gap.Decision, gap.ToTime = reportChanged, gap.FromTime
	}
	if err := a.state.Gaps(record.Stream).Enter(ctx, gap); err != nil {
		return err
	}
	if gap.Decision == decideStop {
		return halt(changestream.CollectionReplaced, "%s", what)
	}
	a.log.Error().Str("change", what).Msg("a collection was changed as a whole, going on as ON_COLLECTION_CHANGE says")
	return nil
}

// checkCollectionChange says what is wrong with ON_COLLECTION_CHANGE.
func (c *Config) checkCollectionChange() error {
	known := []string{stopReplaced, stopChanged, reportChanged}
	if !slices.Contains(known, c.OnCollectionChange) {
		return fmt.Errorf("is %q, not one of %q", c.OnCollectionChange, known)
	}
	return nil
}
