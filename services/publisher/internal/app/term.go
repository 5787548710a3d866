package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"changerelay/services/publisher/internal/backfill"
	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/servicebus"
)

// term is one term: a claimed checkpoint, and what publishes under it.
type term struct {
	*App
	claimed *checkpoint.Claimed
	tenure  *lease.Tenure
	topic   *servicebus.Topic
}

// term claims the checkpoint and publishes from there on.
func (a *App) term(ctx, acting context.Context, tenure *lease.Tenure, topic *servicebus.Topic) error {
	claimed, err := a.claim(acting)
	if err != nil {
		return err
	}
	a.board.claim(claimed.Checkpoint, a.countParked(acting), a.readGaps(acting))
	t := &term{App: a, claimed: claimed, tenure: tenure, topic: topic}
	for {
		if claimed.Copying() {
			err = t.copy(ctx)
		} else {
			err = t.follow(ctx)
		}
		switch {
		case acting.Err() != nil:
			return err
		case errors.Is(err, backfill.ErrDone):
			err = t.endCopy(acting)
		case lost(err):
			err = t.decide(acting, err)
		}
		if err != nil {
			return err
		}
	}
}

// follow publishes the change stream.
func (t *term) follow(ctx context.Context) error {
	claimed := t.claimed
	stream := changestream.New(t.config.stream(t.source), changestream.Start{Token: claimed.Token, At: claimed.Start}, t.log)
	defer func() { t.closing.Go(func() { stream.Close(ctx) }) }()
	t.log.Info().Int64("term", claimed.Term).Str("position", string(claimed.Position)).Msg("publishing")
	return t.publish(ctx, run{source: stream, saves: claimed, reading: stream.State})
}

// copy publishes what the source holds.
func (t *term) copy(ctx context.Context) error {
	place := t.claimed.Place
	collection := t.source.Database(t.config.SourceDatabase).Collection(t.config.collections()[0])
	source := backfill.New(collection, t.config.plan(place.Copy.Since), place, t.log)
	progress := backfill.NewProgress(t.claimed, place)
	t.log.Info().Int64("term", t.claimed.Term).Str("cause", place.Copy.Cause).Int64("copied", place.Copy.Copied).Msg("copying")
	return t.board.copying(progress, func() error {
		return t.publish(ctx, run{
			source: source, saves: progress,
			reading: func() changestream.State { return changestream.State{Err: source.State()} },
		})
	})
}

// endCopy lets the stream begin at the time at which the copy began.
func (t *term) endCopy(ctx context.Context) error {
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	done := *t.claimed.Copy
	done.Done = true
	t.log.Info().Int64("copied", done.Copied).Dur("took", time.Since(done.BeganAt)).Msg("copy complete, the stream follows")
	return t.claimed.Move(attempt, checkpoint.Place{Start: t.claimed.Start, Copy: &done})
}

// run is one relay's: where changes come from, and where progress goes.
type run struct {
	source  relay.Source
	saves   relay.Checkpointer
	reading func() changestream.State
}

func (t *term) publish(ctx context.Context, r run) error {
	loop := relay.New(t.relayConfig(t.claimed.Term), relay.Deps{
		Source:     r.source,
		Mapper:     t.config.mapper(t.keeps()),
		Sender:     t.topic,
		Parker:     t.state.Parked(t.parkedAs),
		Checkpoint: r.saves,
		MayAct:     t.tenure.Err,
		Counters:   t.counters,
		Tracer:     t.tracer,
		Log:        t.log.With().Int64("term", t.claimed.Term).Logger(),
	})
	t.board.beginRun(t.claimed.Checkpoint, loop, r.reading)
	return loop.Run(ctx, t.tenure.Stopping())
}

// claim claims the checkpoint, and decides where a new stream starts.
func (a *App) claim(ctx context.Context) (*checkpoint.Claimed, error) {
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	claimed, err := checkpoint.Claim(attempt, a.state.Checkpoints(), a.config.StreamName, a.config.InstanceID)
	if err != nil {
		return nil, err
	}
	options, err := a.config.stream(a.source).Fingerprint()
	if err != nil {
		return nil, err
	}
	if err := claimed.Adopt(options); err != nil {
		return nil, &changestream.HaltError{Reason: changestream.OptionsChanged, Err: err}
	}
	if claimed.Pinned() {
		return claimed, nil
	}
	start, err := a.firstStart(attempt)
	if err != nil {
		return nil, err
	}
	if err := claimed.Pin(attempt, start); err != nil {
		return nil, err
	}
	a.log.Info().Uint32("seconds", claimed.Start.Seconds).Uint32("increment", claimed.Start.Increment).
		Msg("start of the stream pinned")
	return claimed, nil
}

// firstStart is where START_AT says that a stream without a checkpoint begins.
func (a *App) firstStart(ctx context.Context) (checkpoint.Place, error) {
	at, err := a.config.startTime()
	switch {
	case err != nil:
		return checkpoint.Place{}, fmt.Errorf("read START_AT: %w", err)
	case a.config.StartAt == startSnapshot:
		return a.newCopy(ctx, "START_AT=snapshot", time.Time{})
	case !at.IsZero():
		return checkpoint.Place{Start: checkpoint.ClusterTime{Seconds: uint32(at.Unix())}}, nil
	}
	now, err := changestream.Now(ctx, a.source)
	return checkpoint.Place{Start: now}, err
}

// newCopy is the place of a copy that begins now. The stream that follows it
// begins now, too.
func (a *App) newCopy(ctx context.Context, cause string, since time.Time) (checkpoint.Place, error) {
	now, err := changestream.Now(ctx, a.source)
	if err != nil {
		return checkpoint.Place{}, err
	}
	fresh := &checkpoint.Copy{Cause: cause, Since: since, BeganAt: time.Now().UTC().Truncate(time.Millisecond)}
	if since.IsZero() {
		collection := a.source.Database(a.config.SourceDatabase).Collection(a.config.collections()[0])
		if fresh.Total, err = collection.EstimatedDocumentCount(ctx); err != nil {
			return checkpoint.Place{}, fmt.Errorf("count the documents of %s: %w", collection.Name(), err)
		}
	}
	return checkpoint.Place{Start: now, Copy: fresh}, nil
}

func (a *App) countParked(ctx context.Context) int64 {
	if a.index > 0 {
		return 0 // the first partition counts for the whole stream
	}
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	count, err := a.state.Parked(a.parkedAs).Count(attempt)
	if err != nil {
		a.log.Warn().Err(err).Msg("parked changes not counted")
	}
	return count
}
