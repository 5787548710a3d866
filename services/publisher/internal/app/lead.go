package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"changerelay/services/publisher/internal/backoff"
	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/servicebus"
)

const (
	// haltPause is how long a halted leader waits before it looks again.
	haltPause = time.Minute
	// sendTimeout bounds one send.
	sendTimeout = 15 * time.Second
	// batchBytes bounds the bodies in one send. The link's own limit comes on top.
	batchBytes = 1 << 20
)

// lead publishes while the lease lasts. Each pass of its loop is a term of its
// own, so whatever ended the one before has no say in the next.
func (a *App) lead(ctx context.Context, tenure *lease.Tenure) error {
	defer a.board.endTerm()
	acting, stop := untilStopping(ctx, tenure.Stopping())
	defer stop()
	topic := servicebus.New(a.config.ServiceBusTopic, a.dial)
	defer func() { a.closing.Go(topic.Close) }()
	retry := backoff.Backoff{Initial: 250 * time.Millisecond, Max: 5 * time.Second}
	for {
		began := time.Now()
		err := a.term(ctx, acting, tenure, topic)
		if acting.Err() != nil {
			return a.endOfLead(ctx, err)
		}
		if time.Since(began) > haltPause {
			retry.Reset()
		}
		pause := retry.Next()
		switch {
		case errors.Is(err, checkpoint.ErrSuperseded):
			a.log.Warn().Err(err).Msg("superseded while holding the lease, claiming a new term")
		case halting(err):
			a.board.halt(err)
			a.log.Error().Err(err).Dur("pause", haltPause).Msg("publishing halted")
			pause = haltPause
		default:
			a.board.failed(err)
			a.log.Warn().Err(err).Msg("term ended, claiming a new one")
		}
		if !wait(acting, pause) {
			return a.endOfLead(ctx, nil)
		}
	}
}

// endOfLead is what lead returns when the lease is lost or a stop was asked for.
func (a *App) endOfLead(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		a.log.Warn().Err(err).Msg("stopped with an error, the next leader goes on from the checkpoint")
	}
	return nil
}

// term claims the checkpoint and publishes from there on.
func (a *App) term(ctx, acting context.Context, tenure *lease.Tenure, topic *servicebus.Topic) error {
	claimed, err := a.claim(acting)
	if err != nil {
		return err
	}
	stream := changestream.New(a.config.stream(a.source), changestream.Start{Token: claimed.Token, At: claimed.Start}, a.log)
	defer func() { a.closing.Go(func() { stream.Close(ctx) }) }()
	parked := a.state.Parked(a.parkedAs)
	loop := relay.New(a.relayConfig(claimed.Term), relay.Deps{
		Source:     stream,
		Mapper:     a.config.mapper(a.keeps()),
		Sender:     topic,
		Parker:     parked,
		Checkpoint: claimed,
		MayAct:     tenure.Err,
		Counters:   a.counters,
		Log:        a.log.With().Int64("term", claimed.Term).Logger(),
	})
	a.board.beginTerm(claimed.Checkpoint, loop, stream, a.countParked(acting, parked))
	a.log.Info().Int64("term", claimed.Term).Str("position", string(claimed.Position)).Msg("publishing")
	return loop.Run(ctx, tenure.Stopping())
}

// claim claims the checkpoint, and decides where a new stream starts.
func (a *App) claim(ctx context.Context) (*checkpoint.Claimed, error) {
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	claimed, err := checkpoint.Claim(attempt, a.state.Checkpoints(), a.config.StreamName, a.config.InstanceID)
	if err != nil || claimed.Pinned() {
		return claimed, err
	}
	start, err := a.firstStart(attempt)
	if err != nil {
		return nil, err
	}
	if err := claimed.Pin(attempt, checkpoint.Place{Start: start}); err != nil {
		return nil, err
	}
	a.log.Info().Uint32("seconds", claimed.Start.Seconds).Uint32("increment", claimed.Start.Increment).
		Msg("start of the stream pinned")
	return claimed, nil
}

func (a *App) firstStart(ctx context.Context) (checkpoint.ClusterTime, error) {
	at, err := a.config.startTime()
	if err != nil {
		return checkpoint.ClusterTime{}, fmt.Errorf("read START_AT: %w", err)
	}
	if at.IsZero() {
		return changestream.Now(ctx, a.source)
	}
	return checkpoint.ClusterTime{Seconds: uint32(at.Unix())}, nil
}

func (a *App) countParked(ctx context.Context, parked interface {
	Count(ctx context.Context) (int64, error)
},
) int64 {
	if a.index > 0 {
		return 0 // the first partition counts for the whole stream
	}
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	count, err := parked.Count(attempt)
	if err != nil {
		a.log.Warn().Err(err).Msg("parked changes not counted")
	}
	return count
}

func (a *App) relayConfig(term int64) relay.Config {
	return relay.Config{
		Term:               term,
		MaxInFlight:        a.config.MaxInFlight,
		MaxInFlightBytes:   a.config.MaxInFlightBytes,
		Senders:            a.config.Senders,
		BatchSize:          a.config.BatchSize,
		BatchBytes:         batchBytes,
		SendTimeout:        sendTimeout,
		CompressAbove:      a.config.CompressAbove,
		CheckpointInterval: a.config.CheckpointInterval,
		DrainTimeout:       a.config.ShutdownTimeout / 2,
		StopOnUnmappable:   a.config.OnUnmappable == "stop",
	}
}

// halting reports whether an error is for an operator to resolve.
func halting(err error) bool {
	if _, ok := errors.AsType[*changestream.HaltError](err); ok {
		return true
	}
	_, ok := errors.AsType[*relay.UnsendableError](err)
	return ok
}

// untilStopping returns a context that ends with ctx, or when stopping is
// closed. The returned function frees it.
func untilStopping(ctx context.Context, stopping <-chan struct{}) (context.Context, func()) {
	acting, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-stopping:
			cancel()
		case <-acting.Done():
		}
	})
	return acting, func() {
		cancel()
		watch.Wait()
	}
}

// wait waits for d and returns true, or false when ctx ends first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
