package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"changerelay/services/publisher/internal/backoff"
	"changerelay/services/publisher/internal/patience"
)

// Elector stands for election on behalf of one process.
type Elector struct {
	config  Config
	store   Store
	watcher Watcher
	log     zerolog.Logger

	tenure   int64             // of the last take; owned by Run
	writes   patience.Patience // of takes, renewals and releases; owned by Run
	changed  chan struct{}     // holds one token when the record may have changed
	watching atomic.Bool       // whether changed can be relied on

	mu    sync.Mutex
	state State // guarded by mu
}

// New returns an Elector. watcher may be nil: a standby then polls. It panics
// when config fails its Check.
func New(config Config, store Store, watcher Watcher, log zerolog.Logger) *Elector {
	if err := config.Check(); err != nil {
		panic(err)
	}
	return &Elector{
		config:  config,
		store:   store,
		writes:  patience.Patience{Least: config.attempt(), Most: config.Longest()},
		watcher: watcher,
		log:     log.With().Str("lease", config.Name).Logger(),
		changed: make(chan struct{}, 1),
	}
}

// Run stands by until the lease is ours, leads, and stands by again when it is
// lost, until ctx ends; then it returns nil. It returns early with the error of
// a lead that ended by itself, and with ErrDisplaced.
//
// When ctx ends, lead is told through its tenure and keeps the lease until it
// returns: how long it may take is for lead to bound.
func (e *Elector) Run(ctx context.Context, lead Lead) error {
	var watch sync.WaitGroup
	watchCtx, stopWatch := context.WithCancel(ctx)
	defer watch.Wait()
	defer stopWatch()
	if e.watcher != nil {
		watch.Go(func() { e.watch(watchCtx) })
	}
	defer e.setRole(Stopped)
	for {
		e.setRole(Standby)
		deadline, err := e.stand(ctx)
		if err != nil {
			return nil
		}
		err = e.hold(ctx, deadline, lead)
		switch {
		case errors.Is(err, ErrDisplaced):
			return fmt.Errorf("lead by lease %q as %q: %w", e.config.Name, e.config.Holder.ID, err)
		case errors.Is(err, ErrAside) && ctx.Err() == nil:
			e.tenure++ // whose lease may not have been released is not this one
			e.log.Info().Msg("standing aside, the lease is left to others")
		case errors.Is(err, ErrAside):
			return nil
		case errors.Is(err, ErrLost) && ctx.Err() == nil:
			e.log.Warn().Err(err).Msg("leadership lost, standing by")
		case errors.Is(err, ErrLost), err == nil:
			return nil
		default:
			return err
		}
	}
}

// stand waits until the lease is ours, and returns until when it can be trusted.
func (e *Elector) stand(ctx context.Context) (time.Time, error) {
	retry := backoff.Backoff{Initial: e.config.retry() / 4, Max: e.config.retry()}
	warned := false
	for {
		sentAt := time.Now()
		record, err := e.readOrTake(ctx)
		var wait time.Duration
		wake := e.changed
		switch {
		case err != nil:
			e.failed(err)
			wait = retry.Next()
			wake = nil // our own unanswered call may be the change
		case record.Holder == e.holder():
			return sentAt.Add(e.config.RenewDeadline), nil
		default:
			retry.Reset()
			wait = e.standbyWait(record)
			if !e.eligible() {
				wait = e.config.retry()
			}
			if record.Holder.ID == e.config.Holder.ID && !warned {
				warned = true
				e.log.Warn().Str("incarnation", record.Holder.Incarnation).
					Msg("lease held under this instance's own id, waiting for its end")
			}
		}
		if sleepErr := sleep(ctx, wait, wake); sleepErr != nil {
			if err != nil {
				e.release(ctx) // a take without an answer may have been made
			}
			return time.Time{}, sleepErr
		}
	}
}

// holder is this process with the tenure of its last take.
func (e *Elector) holder() Holder {
	holder := e.config.Holder
	holder.Tenure = e.tenure
	return holder
}

func (e *Elector) eligible() bool { return e.config.Eligible == nil || e.config.Eligible() }

// readOrTake reads the record, and takes the lease where it may be taken. The
// record names holder as its holder only when this call took it.
func (e *Elector) readOrTake(ctx context.Context) (Record, error) {
	record, err := e.read(ctx)
	if err != nil {
		return Record{}, fmt.Errorf("read lease %q: %w", e.config.Name, err)
	}
	e.observe(record)
	over := record.Holder.ID == e.config.Holder.ID && e.config.OwnIDUnique
	if !e.eligible() || record.Live() && !record.Holder.SameProcess(e.config.Holder) && !over {
		return record, nil
	}
	e.tenure++
	err = e.write(ctx, e.config.Longest(), func(attempt context.Context) (err error) {
		record, err = e.store.Take(attempt, Claim{
			Holder:    e.holder(),
			TTL:       e.config.TTL,
			Subject:   e.config.Subject,
			OverOwnID: e.config.OwnIDUnique,
		})
		return err
	})
	if err != nil {
		return Record{}, fmt.Errorf("take lease %q: %w", e.config.Name, err)
	}
	e.stored(record)
	return record, nil
}

func (e *Elector) read(ctx context.Context) (Record, error) {
	attempt, cancel := context.WithTimeout(ctx, e.config.attempt())
	defer cancel()
	return e.store.Read(attempt)
}

// write makes one call that changes the record, within what such calls have come to
// take and within most: a majority may be behind.
func (e *Elector) write(ctx context.Context, most time.Duration, call func(context.Context) error) error {
	attempt, cancel := context.WithTimeout(ctx, min(e.writes.Bound(), most))
	defer cancel()
	sentAt := time.Now()
	err := call(attempt)
	e.writes.Note(time.Since(sentAt), err)
	return err
}

// standbyWait is how long a live lease of another leaves nothing to do.
func (e *Elector) standbyWait(record Record) time.Duration {
	// Spread the standbys a little: the first one there wins anyhow.
	over := max(record.Remaining, 0) + rand.N(e.config.retry()/4+1)
	if e.watching.Load() {
		return over
	}
	return min(over, e.config.retry())
}

// sleep waits for d, for wake, or for the end of ctx, whose cause it returns.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// watch keeps a watch on the record open until ctx ends.
func (e *Elector) watch(ctx context.Context) {
	retry := backoff.Backoff{Initial: e.config.retry(), Max: e.config.TTL}
	for ctx.Err() == nil {
		err := e.watcher.Watch(ctx, func() {
			retry.Reset()
			e.watching.Store(true)
			e.wake()
		})
		if ctx.Err() != nil {
			return
		}
		if e.watching.Swap(false) {
			e.log.Debug().Err(err).Msg("watch on the lease ended, polling until it is back")
		}
		e.wake() // whatever the watch missed
		if retry.Wait(ctx) != nil {
			return
		}
	}
}

func (e *Elector) wake() {
	select {
	case e.changed <- struct{}{}:
	default:
	}
}
