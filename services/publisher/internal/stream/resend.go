package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"changerelay/services/publisher/internal/backfill"
	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/resend"
)

// fenceResends takes the resend under way from earlier terms, before this one sends
// anything. Where the role may not see resends, as one of an earlier release's setup,
// there are none, and the stream goes on.
func (t *term) fenceResends(ctx context.Context) error {
	attempt, cancel := context.WithTimeout(ctx, config.AttemptTimeout)
	defer cancel()
	err := t.State.Resends(t.whole, t.config.Partitions).Fence(attempt, t.index, t.claimed.Term)
	if mongostate.Forbidden(err) {
		t.log.Warn().Err(err).Msg("resends are not to be seen, and are not carried out")
		return nil
	}
	return err
}

// beside returns a stream with what is to be sent again beside it. The returned
// function ends that.
func (t *term) beside(ctx context.Context, stream relay.Source) (relay.Source, func()) {
	both := resend.NewBeside(stream, t.claimed.Position, t.config.Mapper(t.keeps()), t.config.KeptBytes())
	runner := resend.NewRunner(both, t.index, t.claimed.Term, resend.Deps{
		Store: &resends{Resends: t.State.Resends(t.whole, t.config.Partitions), t: t, seen: &t.resent},
		Open:  t.openResend,
		Ended: func(err error) bool { return errors.Is(err, backfill.ErrDone) },
		Moved: t.movedResend, Removals: t.config.Mode == config.ModeDocuments,
		Quiet: t.config.Stream(t.Source).Quiet,
		Now: func(ctx context.Context) (checkpoint.ClusterTime, error) {
			return changestream.Now(ctx, t.Source)
		},
		Log: t.log.With().Int64("term", t.claimed.Term).Logger(),
	})
	ctx, end := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { runner.Run(ctx) })
	return both, func() {
		end()
		running.Wait()
	}
}

// openResend returns what reads the documents of a resend behind a place.
func (t *term) openResend(r *resend.Record, behind []byte) (resend.Reader, error) {
	if err := t.config.MayResend(); err != nil {
		return nil, err
	}
	plan, err := t.config.Resend(r.Selection, r.Rate)
	if err != nil {
		return nil, err
	}
	place, err := backfill.Behind(behind)
	if err != nil {
		return nil, err
	}
	collection := t.Source.Database(t.config.SourceDatabase).Collection(t.config.Collections()[0])
	return backfill.New(collection, plan, place, t.log), nil
}

// movedResend says how the collection of a resend is not the one that was selected
// from; empty where that is not known.
func (t *term) movedResend(ctx context.Context, r *resend.Record) (string, error) {
	source, name := t.config.Stream(t.Source), t.config.Collections()[0]
	origin, err := source.Identify(ctx)
	if err != nil {
		return "", err
	}
	if id := origin.Collections[name]; id != "" {
		return checkpoint.Origin{Collections: map[string]string{name: r.Collection}}.OtherCollections(origin), nil
	}
	exists, known, err := source.Exists(ctx, name)
	if err == nil && known && !exists {
		return fmt.Sprintf("there is no collection %q any more: it was dropped, or has another name", name), nil
	}
	return "", err
}
