package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/session"
)

// HaltTimes stores when aggregates were halted.
type HaltTimes interface {
	// LatestHalts returns when the aggregates that are halted were halted, the
	// latest first, up to limit of them; without those that do not count: see
	// Halt, and AcceptHalts of the store.
	// So are events that were skipped.
	LatestHalts(ctx context.Context, limit int) ([]time.Time, error)
	// Stop notes that an event stops the projectors, where none does yet.
	Stop(ctx context.Context, s Stop) error
	// Stopped is the event that stops the projectors, until an operator resumes; nil
	// where none does.
	Stopped(ctx context.Context) (*Stop, error)
}

// Stop is an event that stops the projectors, by the policy of a projection.
type Stop struct {
	// Event is the one that failed, without its data.
	Event  contract.Event
	Reason string
	// Projection is the one that is to blame; "" where none is known to be.
	Projection string
	At         time.Time
}

// by says which projection is to blame, where the reason does not.
func (s *Stop) by() string {
	if s.Projection == "" || strings.Contains(s.Reason, strconv.Quote(s.Projection)) {
		return ""
	}
	return fmt.Sprintf(" by projection %q", s.Projection)
}

// Brake stops a projector that would halt one aggregate after another, or skip one event
// after another. A bad projection fails for every aggregate that has traffic. Halting them
// all would park the whole stream, and each would need a redrive, while the messages are
// just as safe in the subscription.
//
// The brake is on while at least limit aggregates are halted that were halted within
// window of the latest of them. That is read from what is stored, so a restart or another
// replica gets no new room. The brake stays on as time goes by, since nothing more is
// halted, and lifting halts takes it off. Replicas that halt at the same moment may each
// go one beyond the limit.
//
// The brake is also on once an event has failed for which a projection's policy is to
// stop, until an operator resumes.
//
// While it is on, a failing event neither halts its aggregate nor is skipped: its session
// is given back, and the engine takes no more. Missing versions do not count and are not
// held up, because only sessions that are taken bring them.
type Brake struct {
	times  HaltTimes
	limit  int
	window time.Duration
	log    zerolog.Logger

	// turn holds the place for the one that halts: it counts and halts in one.
	turn chan struct{}
	on   atomic.Pointer[BrakeError] // nil while it is off
}

// BrakeError says that the brake is on, and why.
type BrakeError struct {
	Limit  int
	Window time.Duration
	// Latest is when the last aggregate was halted.
	Latest time.Time
	// Stop is why it is on, where that is not how many were halted.
	Stop *Stop
}

func (e *BrakeError) Error() string {
	if e.Stop != nil {
		return fmt.Sprintf("event %q of aggregate %q, sequence %s, cannot be applied%s, and onError says stop: %s. No more sessions are taken since %s, and messages stay in the subscription. "+
			"Mend the projection, or have its onError say something else, roll it out, and run projector halts resume",
			e.Stop.Event.ID, e.Stop.Event.AggregateID, e.Stop.Event.Sequence, e.Stop.by(), e.Stop.Reason, e.Stop.At.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%d aggregates were halted, or events skipped, within %s (HALT_LIMIT, HALT_WINDOW), the last at %s: no more sessions are taken, and messages stay in the subscription. "+
		"projector parked list and projector skipped list say why each was. Mend the projections or roll them back, then run projector parked redrive --all; "+
		"projector halts resume goes on with those aggregates halted and those events skipped, as many again may be, and HALT_LIMIT allows more. "+
		"No redrive helps those that the read model did not begin with: docs/operations.md, \"Aggregates that began in the middle\"",
		e.Limit, e.Window, e.Latest.UTC().Format(time.RFC3339))
}

// Unwrap has the session given back.
func (e *BrakeError) Unwrap() error { return session.ErrPaused }

// NewBrake returns a brake; with a limit of 0 any number may be halted.
func NewBrake(times HaltTimes, limit int, window time.Duration, log zerolog.Logger) *Brake {
	return &Brake{times: times, limit: limit, window: window, log: log, turn: make(chan struct{}, 1)}
}

// Run looks again and again, until ctx ends: another replica may have halted
// aggregates, or an operator lifted their halts.
func (b *Brake) Run(ctx context.Context) error {
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
	now, err := b.look(ctx)
	if err != nil {
		return err
	}
	switch before := b.on.Swap(now); {
	case now != nil && before == nil && now.Stop != nil:
		b.log.Error().Err(now).Msg("an event has failed that stops the projectors, no more sessions are taken")
	case now != nil && before == nil:
		b.log.Error().Err(now).Msg("too many aggregates are halted, no more sessions are taken")
	case now == nil && before != nil:
		b.log.Info().Msg("fewer aggregates are halted, or an operator has resumed: sessions are taken again")
	}
	return nil
}

// look is why the brake is on, by what is stored; nil where it is off.
func (b *Brake) look(ctx context.Context) (*BrakeError, error) {
	stop, err := b.times.Stopped(ctx)
	if err != nil {
		return nil, err
	}
	if stop != nil {
		return &BrakeError{Stop: stop}, nil
	}
	if b.limit == 0 {
		return nil, nil
	}
	times, err := b.times.LatestHalts(ctx, b.limit)
	if err != nil || len(times) < b.limit || times[0].Sub(times[b.limit-1]) > b.window {
		return nil, err
	}
	return &BrakeError{Limit: b.limit, Window: b.window, Latest: times[0]}, nil
}

// stop notes that an event stops the projectors, and is the error that says so.
func (b *Brake) stop(ctx context.Context, s Stop) error {
	s.At = time.Now()
	if err := b.times.Stop(ctx, s); err != nil {
		return fmt.Errorf("stop the projectors: %w", err)
	}
	if err := b.Look(ctx); err != nil {
		return err
	}
	// An operator may have resumed at once.
	return cmp.Or(b.Err(), error(&BrakeError{Stop: &s}))
}

// Err is why the brake is on, a *BrakeError; nil while it is off.
func (b *Brake) Err() error {
	if on := b.on.Load(); on != nil {
		return on
	}
	return nil
}

// Stopped tells whether it is on because of one event.
func (b *Brake) Stopped() bool {
	on := b.on.Load()
	return on != nil && on.Stop != nil
}

// On tells whether the brake is on.
func (b *Brake) On() bool { return b.on.Load() != nil }

// halt calls f, which stores one more halt, unless the brake is on.
func (b *Brake) halt(ctx context.Context, f func() (HaltID, error)) (id HaltID, err error) {
	err = b.take(ctx, func() error {
		id, err = f()
		return err
	})
	return id, err
}

// take calls f, which stores one more of what is counted, unless the brake is on.
func (b *Brake) take(ctx context.Context, f func() error) error {
	if b == nil {
		return f()
	}
	if b.limit > 0 {
		select {
		case b.turn <- struct{}{}:
			defer func() { <-b.turn }()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if err := errors.Join(b.Look(ctx), b.Err()); err != nil {
		return err
	}
	return f()
}
