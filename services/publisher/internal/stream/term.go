package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/backfill"
	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/servicebus"
	"changerelay/services/publisher/internal/status"
)

// term is one term: a claimed checkpoint, and what publishes under it.
type term struct {
	*Stream
	claimed *checkpoint.Claimed
	tenure  *lease.Tenure
	topic   *servicebus.Topic
	// end ends the term with a cause.
	end context.CancelCauseFunc
}

// term claims the checkpoint and publishes from there on.
func (s *Stream) term(ctx, acting context.Context, tenure *lease.Tenure, topic *servicebus.Topic) error {
	claimed, err := s.claim(acting, topic)
	if err != nil {
		return err
	}
	if err := s.settleParked(acting, claimed); err != nil {
		return err
	}
	parked, err := s.countParked(acting)
	if err != nil {
		return err
	}
	s.tracker.Claim(claimed.Checkpoint, s.record, s.shownParked(parked))
	s.readLedger(acting)
	var comparing sync.WaitGroup
	defer comparing.Wait()
	ctx, end, endWatch := s.whileRecorded(ctx)
	defer endWatch()
	defer s.markAside(ctx, topic)()
	t := &term{
		Stream: s, claimed: claimed, tenure: tenure, topic: topic, end: end,
	}
	comparing.Go(func() { t.watchParked(ctx) })
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
	if err := t.fenceResends(ctx); err != nil {
		return err
	}
	stream := changestream.New(t.config.Stream(t.Source), changestream.Start{Token: claimed.Token, At: claimed.Start, Event: claimed.Event}, t.log)
	stream.OnCollectionChange(t.changed)
	defer func() { t.Closing.Go(func() { stream.Close(ctx) }) }()
	t.log.Info().Int64("term", claimed.Term).Str("position", string(claimed.Position)).Msg("publishing")
	source, end := t.beside(ctx, stream)
	defer end()
	return t.publish(ctx, run{source: source, saves: claimed, reading: stream.State})
}

// copy publishes what the source holds. It returns backfill.ErrDone when all of
// that is sent or parked, and kept so, and halts where that cannot be in order.
func (t *term) copy(ctx context.Context) error {
	place := t.claimed.Place
	collection := t.Source.Database(t.config.SourceDatabase).Collection(t.config.Collections()[0])
	source := backfill.New(collection, t.config.Plan(place.Copy.Since), place, t.log)
	progress := backfill.NewProgress(t.claimed, place)
	t.log.Info().Int64("term", t.claimed.Term).Str("cause", place.Copy.Cause).Int64("copied", place.Copy.Copied).Msg("copying")
	err := t.tracker.Copying(ctx, &status.CopyRun{Source: source, Progress: progress}, t.log, func() error {
		return t.publish(ctx, run{
			source: source, saves: progress,
			reading: func() changestream.State {
				state := source.State()
				return changestream.State{Err: state.Err, Unread: state.Unread}
			},
		})
	})
	if errors.Is(err, backfill.ErrDone) {
		return cmp.Or(source.Complete(progress), err)
	}
	if spelled, ok := errors.AsType[*backfill.SpelledError](err); ok {
		return halt(changestream.IDsMixed, "%w", spelled)
	}
	return err
}

// Waits implements relay.Parker.
func (t *term) Waits(ctx context.Context, change relay.Change) (bool, error) {
	parked := t.State.Parked(t.whole)
	return parked.Waits(ctx, parked.ID(change))
}

// Full implements relay.Parker. It counts what all partitions have parked, as each may be
// dealt with at any time: several partitions that park at once may pass the bound by one each.
func (t *term) Full(ctx context.Context) (bool, error) {
	if t.config.ParkLimit == 0 {
		return false, nil
	}
	count, err := t.countParked(ctx)
	return count >= t.config.ParkLimit, err
}

// Park implements relay.Parker. Each change that is kept aside is named in the
// checkpoint before, and counted there afterwards: so it makes up for none that is
// lost, whenever this process dies. Over a checkpoint that is restored from before,
// without the change, nothing is saved, so the stream never passes it.
func (t *term) Park(ctx context.Context, parked relay.Parked) error {
	err := t.park(ctx, parked)
	if errors.Is(err, checkpoint.ErrSuperseded) {
		t.end(err)
	}
	return err
}

func (t *term) park(ctx context.Context, parked relay.Parked) error {
	kept := t.State.Parked(t.whole)
	id := kept.ID(parked.Change)
	if !t.claimed.Expects(id) {
		there, err := kept.Has(ctx, id)
		if err == nil && !there {
			err = t.claimed.Expect(ctx, checkpoint.Expected{ID: id, At: parked.Change.Position})
		}
		if err != nil {
			return err
		}
	}
	owner, err := kept.Park(ctx, mongostate.Reader{Partition: t.config.StreamName, Since: t.claimed.ClaimedAt}, parked)
	if err != nil {
		return err
	}
	if owner != t.config.StreamName {
		return t.claimed.Leave(ctx, id)
	}
	return t.claimed.Keep(ctx, id, parked.Change.Position)
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
		Mapper:     t.config.Mapper(t.keeps()),
		Sender:     t.topic,
		Parker:     t,
		Checkpoint: r.saves,
		MayAct:     t.tenure.Err,
		Counters:   t.counters,
		Tracer:     t.Tracer,
		Log:        t.log.With().Int64("term", t.claimed.Term).Logger(),
	})
	t.tracker.BeginRun(t.claimed.Checkpoint, loop, r.reading)
	return t.unsendable(overparked(loop.Run(ctx, t.tenure.Stopping()), t.config.ParkLimit))
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
	return fmt.Errorf("%w; PARK_LIMIT is %d: look at publisher parked list; where a setting is wrong (FIELD_…; or MODE, or with PARTITIONS an …_AGGREGATE_ID, which publisher checkpoint accept --why TEXT takes over) mend it, run publisher parked replay --all with it (with --accept-settings --why TEXT where that is FIELD_VERSION or an …_AGGREGATE_ID), and restart only then, so that later changes do not overtake (what it refuses because the stream has not passed it, is sent after the restart); "+
		"else replay or discard some, or raise PARK_LIMIT; the stream then goes on by itself", err, limit)
}
