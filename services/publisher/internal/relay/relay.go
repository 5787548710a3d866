package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/patience"
)

// errDrain is the cause that ends a drain which takes too long.
var errDrain = errors.New("not drained in time")

// Config bounds and times a relay. Every field must be set, except where zero
// is given a meaning.
type Config struct {
	// Term is stamped on every message.
	Term int64
	// MaxInFlight bounds the changes that are read and not finished.
	MaxInFlight int
	// MaxInFlightBytes bounds their size, source and message together.
	MaxInFlightBytes int64
	// Senders is how many lanes are sent from at once.
	Senders int
	// BatchSize is how many messages of one aggregate go in one send.
	BatchSize int
	// BatchBytes bounds their bodies together.
	BatchBytes int
	// Mixed puts messages of several aggregates in one send, BatchSize and
	// BatchBytes in all.
	Mixed bool
	// SendTimeout bounds one send of up to a MiB. A larger one has as much again
	// for each further MiB that it begins.
	SendTimeout time.Duration
	// ParkTimeout bounds one attempt to park a change of up to a MiB. A larger one has
	// as much again for each further MiB that it begins, and twice the time after each
	// attempt that took too long, an hour at most.
	ParkTimeout time.Duration
	// Patience is how long one message may fail, sent alone, while others are
	// accepted, before it counts as one that cannot be sent.
	Patience time.Duration
	// CompressAbove is the body size in bytes above which it is compressed; 0 is never.
	CompressAbove int
	// CheckpointInterval is the least time between two saves.
	CheckpointInterval time.Duration
	// DrainTimeout bounds how long a stop waits for what is in flight.
	DrainTimeout time.Duration
	// StopOnUnmappable ends the relay at a change that cannot be sent, instead
	// of parking it.
	StopOnUnmappable bool
	// ParkAtOnce is how many changes are parked at once: one where their number is
	// bounded, so that no other takes the same room. Less is one.
	ParkAtOnce int
}

// Deps are what a relay works with.
type Deps struct {
	Source     Source
	Mapper     Mapper
	Sender     Sender
	Parker     Parker
	Checkpoint Checkpointer
	// MayAct returns an error when the lease cannot be trusted at this moment.
	MayAct func() error
	// Counters outlive the relay.
	Counters *Counters
	// Tracer may be nil, for none.
	Tracer Tracer
	Log    zerolog.Logger
}

// Relay publishes one stream in one term.
type Relay struct {
	config    Config
	deps      Deps
	log       zerolog.Logger
	watermark *watermark
	lanes     *lanes
	turns     *turns
	breaker   *breaker
	proof     proof
	saves     saves

	given   uint64        // changes that the source gave; owned by the reader, then by Run
	parking chan struct{} // held by the changes that are being parked

	// Owned by the saver, then by Run: the watermark as last saved, and how long a save may take.
	savedMoves uint64
	saving     patience.Patience
}

// New returns a relay that has not begun.
func New(config Config, deps Deps) *Relay {
	window := newWatermark(config.MaxInFlight, config.MaxInFlightBytes)
	return &Relay{
		config:    config,
		deps:      deps,
		log:       deps.Log,
		watermark: window,
		lanes:     newLanes(len(window.ring)),
		turns:     newTurns(config.Mixed),
		breaker:   newBreaker(config.SendTimeout),
		parking:   make(chan struct{}, max(config.ParkAtOnce, 1)),
		saving:    patience.Patience{Least: saveTimeout, Most: max(saveTimeout, config.DrainTimeout)},
	}
}

// Run publishes until stopping is closed, ctx ends, or it cannot go on. When stopping is
// closed, it reads no more, finishes what is in flight within DrainTimeout, and returns
// nil; it also returns nil when that takes longer, unless the last save fails. When the
// source ends, it finishes everything that was read, checks by counting that it did, and
// returns the source's error. In any case it saves the checkpoint a last time, unless a
// later term has it. It may be called once.
func (r *Relay) Run(ctx context.Context, stopping <-chan struct{}) error {
	work, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	group, groupCtx := errgroup.WithContext(work)
	intake, endIntake := context.WithCancel(groupCtx)
	defer endIntake()
	settled := make(chan struct{}) // closed when nothing is in flight any more

	var ended, refused error // written by the intake, read after Wait
	group.Go(func() error {
		ended, refused = r.takeIn(intake)
		r.lanes.close()
		return nil
	})
	group.Go(func() error {
		defer close(settled)
		return r.sendAll(groupCtx)
	})
	group.Go(func() error { return r.saveRegularly(groupCtx, settled) })
	group.Go(func() error {
		r.drainWhenAsked(groupCtx, stopping, settled, endIntake, abort)
		return nil
	})
	err := group.Wait()
	var unsaved error
	if !errors.Is(err, checkpoint.ErrSuperseded) {
		unsaved = r.saveLast(ctx)
	}
	switch {
	case unsaved != nil:
		return errors.Join(err, unsaved)
	case err != nil && errors.Is(context.Cause(work), errDrain):
		r.log.Warn().Err(err).Msg("stopped with changes in flight, the next leader sends them again")
		return nil
	case err != nil:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case refused != nil:
		return refused
	default:
		return r.endOf(ended)
	}
}

// endOf returns why the source ended, when everything that it gave is finished.
// That is compared, and not concluded from the senders having nothing to do.
func (r *Relay) endOf(ended error) error {
	finished := r.watermark.finished()
	if ended == nil || finished == r.given {
		return ended
	}
	return &UnfinishedError{Given: r.given, Finished: finished, End: ended.Error()}
}

// drainWhenAsked ends the intake when stopping is closed, and the whole relay
// when it is not settled in time after that.
func (r *Relay) drainWhenAsked(ctx context.Context, stopping, settled <-chan struct{}, endIntake func(), abort context.CancelCauseFunc) {
	select {
	case <-stopping:
	case <-settled:
		return
	case <-ctx.Done():
		return
	}
	endIntake()
	timer := time.NewTimer(r.config.DrainTimeout)
	defer timer.Stop()
	select {
	case <-timer.C:
		abort(errDrain)
	case <-settled:
	case <-ctx.Done():
	}
}

// sendAll runs the senders until all lanes are closed and empty.
func (r *Relay) sendAll(ctx context.Context) error {
	senders, ctx := errgroup.WithContext(ctx)
	for range r.config.Senders {
		senders.Go(func() error { return r.sendReady(ctx) })
	}
	return senders.Wait()
}

// UnfinishedError says that a source has ended before everything that it gave was sent
// or parked. It replaces the source's own error, so that nobody takes those changes for
// done; a new relay begins after what was saved.
type UnfinishedError struct {
	Given, Finished uint64
	// End is why the source ended.
	End string
}

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("of %d changes that were read %d are finished at the end of the source (%s)", e.Given, e.Finished, e.End)
}

// UnsendableError is a change that cannot be sent, under StopOnUnmappable.
type UnsendableError struct {
	Position contract.Position
	Reason   string
	// Raw is the change as it was read.
	Raw []byte
}

func (e *UnsendableError) Error() string {
	return fmt.Sprintf("the change at position %s cannot be sent: %s", e.Position, e.Reason)
}

// OverparkedError is a change that cannot be sent when no more may be parked.
type OverparkedError struct {
	Position contract.Position
	Reason   string
}

func (e *OverparkedError) Error() string {
	return fmt.Sprintf("too many changes are parked to park the one at position %s as well, which cannot be sent: %s", e.Position, e.Reason)
}
