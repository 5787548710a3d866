package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/backfill"
	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/servicebus"
)

// term is one term: a claimed checkpoint, and what publishes under it.
type term struct {
	*App
	claimed *checkpoint.Claimed
	tenure  *lease.Tenure
	topic   *servicebus.Topic
	// parkedBefore is how many changes were parked and not dealt with when the term
	// began, and countedBefore the counter of parked changes at that time.
	parkedBefore, countedBefore int64
	// end ends the term with a cause.
	end context.CancelCauseFunc
}

// term claims the checkpoint and publishes from there on.
func (a *App) term(ctx, acting context.Context, tenure *lease.Tenure, topic *servicebus.Topic) error {
	claimed, err := a.claim(acting, topic)
	if err != nil {
		return err
	}
	parked, err := a.countParked(acting)
	if err != nil {
		return err
	}
	a.board.claim(claimed.Checkpoint, a.record, a.shownParked(parked))
	a.readLedger(acting)
	ctx, end, endWatch := a.whileRecorded(ctx)
	defer endWatch()
	defer a.markAside(ctx, topic)()
	t := &term{
		App: a, claimed: claimed, tenure: tenure, topic: topic, parkedBefore: parked, countedBefore: a.counters.Parked(), end: end,
	}
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
	stream.OnCollectionChange(t.changed)
	defer func() { t.closing.Go(func() { stream.Close(ctx) }) }()
	t.log.Info().Int64("term", claimed.Term).Str("position", string(claimed.Position)).Msg("publishing")
	return t.publish(ctx, run{source: stream, saves: claimed, reading: stream.State})
}

// copy publishes what the source holds. It returns backfill.ErrDone when all of
// that is sent or parked, and kept so.
func (t *term) copy(ctx context.Context) error {
	place := t.claimed.Place
	collection := t.source.Database(t.config.SourceDatabase).Collection(t.config.collections()[0])
	source := backfill.New(collection, t.config.plan(place.Copy.Since), place, t.log)
	progress := backfill.NewProgress(t.claimed, place)
	t.log.Info().Int64("term", t.claimed.Term).Str("cause", place.Copy.Cause).Int64("copied", place.Copy.Copied).Msg("copying")
	err := t.board.copying(ctx, &copyRun{source: source, progress: progress}, t.log, func() error {
		return t.publish(ctx, run{
			source: source, saves: progress,
			reading: func() changestream.State { return changestream.State{Err: source.State()} },
		})
	})
	if errors.Is(err, backfill.ErrDone) {
		return cmp.Or(source.Complete(progress), err)
	}
	return err
}

// endCopy lets the stream begin at the time at which the copy began.
func (t *term) endCopy(ctx context.Context) error {
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	done := *t.claimed.Copy
	done.Done = true
	if err := t.emptyCopy(attempt, done); err != nil {
		return err
	}
	t.log.Info().Int64("copied", done.Copied).Dur("took", time.Since(done.BeganAt)).Msg("copy complete, the stream follows")
	return t.claimed.Move(attempt, checkpoint.Place{Start: t.claimed.Start, Copy: &done})
}

// emptyCopy writes into the ledger that a copy had nothing to copy because its
// collection is not there, or not known to be: a name may be wrong.
func (t *term) emptyCopy(ctx context.Context, done checkpoint.Copy) error {
	if done.Copied > 0 {
		return nil
	}
	name := t.config.collections()[0]
	exists, known, err := t.config.stream(t.source).Exists(ctx, name)
	if err != nil || exists {
		return err
	}
	text := fmt.Sprintf("the copy found nothing: there is no collection %q in the database %q", name, t.config.SourceDatabase)
	if !known {
		text = fmt.Sprintf("the copy found nothing, and whether there is a collection %q in the database %q may not be seen", name, t.config.SourceDatabase)
	}
	at := t.claimed.Start.Time()
	t.log.Warn().Str("found", text).Msg("copy without a document, look at SOURCE_DATABASE and SOURCE_COLLECTION")
	err = t.state.Gaps(t.config.StreamName).Enter(ctx, mongostate.Gap{
		FromTime: at, ToTime: at, Cause: "copy of a missing collection", Error: text,
		Decision: reportChanged, At: time.Now(), Instance: t.config.InstanceID, Term: t.claimed.Term,
	})
	t.readLedger(ctx)
	return err
}

// Park implements relay.Parker. Each change that is kept aside is marked in the
// checkpoint: over one that is restored from before, without the change, nothing
// is saved, so the stream never passes it.
func (t *term) Park(ctx context.Context, parked relay.Parked) error {
	if err := t.state.Parked(t.parkedAs).Park(ctx, parked); err != nil {
		return err
	}
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	err := t.claimed.Mark(attempt)
	if errors.Is(err, checkpoint.ErrSuperseded) {
		t.end(err)
	}
	return err
}

// run is one relay's: where changes come from, and where progress goes.
type run struct {
	source  relay.Source
	saves   relay.Checkpointer
	reading func() changestream.State
}

func (t *term) publish(ctx context.Context, r run) error {
	loop := relay.New(t.relayConfig(t.claimed.Term, t.parkRoom()), relay.Deps{
		Source:     r.source,
		Mapper:     t.config.mapper(t.keeps()),
		Sender:     t.topic,
		Parker:     t,
		Checkpoint: r.saves,
		MayAct:     t.tenure.Err,
		Counters:   t.counters,
		Tracer:     t.tracer,
		Log:        t.log.With().Int64("term", t.claimed.Term).Logger(),
	})
	t.board.beginRun(t.claimed.Checkpoint, loop, r.reading)
	return t.unsendable(overparked(loop.Run(ctx, t.tenure.Stopping()), t.config.ParkLimit))
}

// parkRoom is how many more changes may be parked; negative is no bound.
func (t *term) parkRoom() int64 {
	if t.config.ParkLimit == 0 {
		return -1
	}
	return max(t.config.ParkLimit-t.parkedBefore-(t.counters.Parked()-t.countedBefore), 0)
}

// unsendable adds to an error about a change that ON_UNMAPPABLE=stop stops at which
// document it is, and what to do.
func (t *term) unsendable(err error) error {
	stopped, ok := errors.AsType[*relay.UnsendableError](err)
	if !ok {
		return err
	}
	todo := "mend the setting that is wrong, such as FIELD_…"
	if t.claimed.Copying() {
		todo += ", or delete the document and insert it as it should be, which the stream sends behind the copy"
	}
	return fmt.Errorf("document %s: %w; %s, or set ON_UNMAPPABLE=park to keep it aside and go on, and restart",
		bson.Raw(stopped.Raw).Lookup("documentKey"), err, todo)
}

// overparked adds to an error about too many parked changes what to do.
func overparked(err error, limit int64) error {
	if _, ok := errors.AsType[*relay.OverparkedError](err); !ok {
		return err
	}
	return fmt.Errorf("%w; PARK_LIMIT is %d: look at publisher parked list; where a setting is wrong (FIELD_…, or MODE, which publisher checkpoint accept --why TEXT takes over) mend it, run publisher parked replay --all with it, and restart only then, so that later changes do not overtake; "+
		"else replay or discard some, or raise PARK_LIMIT; the stream then goes on by itself", err, limit)
}

// newCopy is the place of a copy that begins now. The stream that follows it
// begins now, too.
func (a *App) newCopy(ctx context.Context, cause string, since time.Time) (checkpoint.Place, error) {
	now, err := changestream.Now(ctx, a.source)
	if err != nil {
		return checkpoint.Place{}, err
	}
	fresh := &checkpoint.Copy{Cause: cause, Since: since, Order: a.config.copyOrder(since), BeganAt: time.Now().UTC().Truncate(time.Millisecond)}
	if since.IsZero() {
		collection := a.source.Database(a.config.SourceDatabase).Collection(a.config.collections()[0])
		if fresh.Total, err = collection.EstimatedDocumentCount(ctx); err != nil {
			return checkpoint.Place{}, fmt.Errorf("count the documents of %s: %w", collection.Name(), err)
		}
	}
	return checkpoint.Place{Start: now, Copy: fresh}, nil
}

// countParked counts the stream's parked changes that were not dealt with.
func (a *App) countParked(ctx context.Context) (int64, error) {
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	count, err := a.state.Parked(a.parkedAs).Count(attempt)
	if err != nil {
		return 0, fmt.Errorf("count the parked changes of %q: %w", a.parkedAs, err)
	}
	return count, nil
}

// shownParked is the part of the count that this publisher shows: the first
// partition shows that of the whole stream.
func (a *App) shownParked(count int64) int64 {
	if a.index > 0 {
		return 0
	}
	return count
}
