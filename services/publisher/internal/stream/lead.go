package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"changerelay/services/publisher/internal/backoff"
	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/servicebus"
)

const (
	// haltPause is how long a halted leader waits before it looks again.
	haltPause = time.Minute
	// oplogInterval is the time between looks at the operation log's oldest entry.
	oplogInterval = 30 * time.Second
	// batchBytes bounds the bodies in one send. The link's own limit comes on top.
	batchBytes = 1 << 20
)

// lead publishes while the lease lasts. Each pass of its loop is a term of its
// own, so whatever ended the one before has no say in the next.
func (s *Stream) lead(ctx context.Context, tenure *lease.Tenure) error {
	defer s.tracker.EndTerm()
	acting, stop := untilStopping(ctx, tenure.Stopping())
	defer stop()
	topic := servicebus.New(s.config.ServiceBusTopic, s.Dial)
	defer func() { s.Closing.Go(topic.Close) }()
	var watching sync.WaitGroup
	defer watching.Wait()
	watch, endWatch := context.WithCancel(acting)
	defer endWatch()
	watching.Go(func() { s.watchOplog(watch) })
	watching.Go(func() { // while the stream is opened
		connecting, cancel := context.WithTimeout(watch, s.config.SendTimeout)
		defer cancel()
		topic.Connect(connecting)
	})
	retry := backoff.Backoff{Initial: 250 * time.Millisecond, Max: 5 * time.Second}
	for {
		began := time.Now()
		err := s.term(ctx, acting, tenure, topic)
		if acting.Err() != nil {
			return s.endOfLead(ctx, err)
		}
		if time.Since(began) > haltPause {
			retry.Reset()
		}
		pause := retry.Next()
		switch {
		case errors.Is(err, checkpoint.ErrSuperseded):
			s.log.Warn().Err(err).Msg("superseded while holding the lease, claiming a new term")
		case halting(err):
			s.tracker.Halt(err)
			s.log.Error().Err(err).Dur("pause", haltPause).Msg("publishing halted")
			s.keepHalt(acting, err)
			if misfit(err) {
				s.tracker.StandAside(err)
				return fmt.Errorf("%w: %w", lease.ErrAside, err)
			}
			if !s.awaitDecision(acting, haltPause) {
				return s.endOfLead(ctx, nil)
			}
			continue
		default:
			s.tracker.Failed(err)
			s.log.Warn().Err(err).Msg("term ended, claiming a new one")
		}
		if !wait(acting, pause) {
			return s.endOfLead(ctx, nil)
		}
	}
}

// watchOplog keeps an eye on how far back the source's operation log reaches,
// where the role may read it.
func (s *Stream) watchOplog(ctx context.Context) {
	for {
		oldest, err := changestream.Oldest(ctx, s.Source)
		if err != nil {
			s.log.Debug().Err(err).Msg("head room of the operation log not known")
		}
		s.tracker.OldestIs(oldest)
		if !wait(ctx, oplogInterval) {
			return
		}
	}
}

// endOfLead is what lead returns when the lease is lost or a stop was asked for.
func (s *Stream) endOfLead(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		s.log.Warn().Err(err).Msg("stopped with an error, the next leader goes on from the checkpoint")
	}
	return nil
}

func (s *Stream) relayConfig(term int64) relay.Config {
	return relay.Config{
		Term:               term,
		MaxInFlight:        s.config.MaxInFlight,
		MaxInFlightBytes:   s.config.WindowBytes(),
		Senders:            s.config.Senders,
		BatchSize:          s.config.BatchSize,
		BatchBytes:         batchBytes,
		Mixed:              s.config.Batching == config.BatchMixed,
		SendTimeout:        s.config.SendTimeout,
		ParkTimeout:        config.AttemptTimeout,
		Patience:           s.config.SendPatience,
		CompressAbove:      s.config.CompressAbove,
		CheckpointInterval: s.config.CheckpointInterval,
		DrainTimeout:       s.config.ShutdownTimeout / 2,
		StopOnUnmappable:   s.config.OnUnmappable == "stop",
		ParkAtOnce:         s.parkAtOnce(),
	}
}

// parkAtOnce is how many changes may be parked at once: as many as are sent, where they are
// not counted.
func (s *Stream) parkAtOnce() int {
	if s.config.ParkLimit > 0 {
		return 1
	}
	return s.config.Senders
}

// halting reports whether an error is for an operator to resolve.
func halting(err error) bool {
	if _, ok := errors.AsType[*changestream.HaltError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*relay.OverparkedError](err); ok {
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
