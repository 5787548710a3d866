package delivery

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"changerelay/services/projector/internal/session"
)

// HaltTimes is where it is stored when aggregates were halted.
type HaltTimes interface {
	// LatestHalts returns when the aggregates that are halted were halted, the
	// latest first, up to limit of them; without those that do not count: see
	// Halt, and AcceptHalts of the store.
	LatestHalts(ctx context.Context, limit int) ([]time.Time, error)
}

// Brake stops a projector that would halt one aggregate after another. One bad
// projection fails for every aggregate that has traffic; halting them all would
// park the whole stream and make a redrive of each necessary, where the messages
// are as well kept in the subscription.
//
// The brake is on while so many aggregates (limit) are halted that were so within
// so short a time (window) of the latest of them. That is read from what is stored:
// a restart or another replica has no new room, the brake stays on when time
// goes by, since nothing more is halted, and a lift takes it off. Replicas that
// halt at the same moment may each go one beyond the limit.
//
// While it is on, no event that fails halts its aggregate: its session is given
// back, and the engine takes no more. Missing versions do not count, and are not
// held up: only sessions that are taken bring them.
type Brake struct {
	times  HaltTimes
	limit  int
	window time.Duration
	log    zerolog.Logger

	// turn holds the place for the one that halts: it counts and halts in one.
	turn chan struct{}
	on   atomic.Pointer[BrakeError] // nil while it is off
}

// BrakeError tells that and why the brake is on.
type BrakeError struct {
	Limit  int
	Window time.Duration
	// Latest is when the last aggregate was halted.
	Latest time.Time
}

func (e *BrakeError) Error() string {
	return fmt.Sprintf("%d aggregates were halted within %s (HALT_LIMIT, HALT_WINDOW), the last at %s: no more sessions are taken, and messages stay in the subscription. "+
		"projector parked list says why each was. Mend the projections or roll them back, then run projector parked redrive --all; "+
		"projector halts resume goes on with those aggregates halted, as many again may be, and HALT_LIMIT allows more. "+
		"No redrive helps those that the read model did not begin with: docs/operations.md, \"Aggregates that began in the middle\"",
		e.Limit, e.Window, e.Latest.UTC().Format(time.RFC3339))
}

// Unwrap has the session given back.
func (e *BrakeError) Unwrap() error { return session.ErrPaused }

// NewBrake returns a brake; with a limit of 0 it is never on.
func NewBrake(times HaltTimes, limit int, window time.Duration, log zerolog.Logger) *Brake {
	return &Brake{times: times, limit: limit, window: window, log: log, turn: make(chan struct{}, 1)}
}

// Run looks again and again, until ctx ends: another replica may have halted
// aggregates, or an operator lifted their halts.
func (b *Brake) Run(ctx context.Context) error {
	if b.limit == 0 {
		return nil
	}
	ticker := time.NewTicker(readEvery)
	defer ticker.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, trustTime)
		// Where the store does not answer the brake stays as it is.
		_ = b.Look(attempt)
		cancel()
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Look reads what is stored. The error is the store's; Err tells what was seen.
func (b *Brake) Look(ctx context.Context) error {
	if b.limit == 0 {
		return nil
	}
	times, err := b.times.LatestHalts(ctx, b.limit)
	if err != nil {
		return err
	}
	var now *BrakeError
	if len(times) >= b.limit && times[0].Sub(times[b.limit-1]) <= b.window {
		now = &BrakeError{Limit: b.limit, Window: b.window, Latest: times[0]}
	}
	switch before := b.on.Swap(now); {
	case now != nil && before == nil:
		b.log.Error().Err(now).Msg("too many aggregates are halted, no more sessions are taken")
	case now == nil && before != nil:
		b.log.Info().Msg("fewer aggregates are halted, sessions are taken again")
	}
	return nil
}

// Err is why the brake is on, a *BrakeError; nil while it is off.
func (b *Brake) Err() error {
	if on := b.on.Load(); on != nil {
		return on
	}
	return nil
}

// On tells whether the brake is on.
func (b *Brake) On() bool { return b.on.Load() != nil }

// halt calls f, which stores one more halt, unless the brake is on.
func (b *Brake) halt(ctx context.Context, f func() (HaltID, error)) (HaltID, error) {
	if b == nil || b.limit == 0 {
		return f()
	}
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if err := errors.Join(b.Look(ctx), b.Err()); err != nil {
		return "", err
	}
	return f()
}
