package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"changerelay/services/projector/internal/backoff"
)

// Engine works through sessions. Create it with New, run it once.
type Engine struct {
	cfg           Config
	acceptor      Acceptor
	handler       Handler
	log           zerolog.Logger
	acceptLimiter *acceptLimiter
	idlePolicy    *idlePolicy
	counts        Counts
	inHand        inHand
	circuit       *circuit
	rests         rests
	undecodable   undecodable
	budget        *budget
	// atWork bounds, as much as budget, what is being applied: where messages weigh more
	// than was expected, more has come than there is room to unpack at once.
	atWork *budget
	scales scales
	pace   *pace

	// throttling says rarely how it goes with settlements that are throttled: at a
	// limit some are refused every few seconds, beside others that are not.
	throttling zerolog.Sampler
	// emptyHanded says as rarely which sessions no message came of.
	emptyHanded zerolog.Sampler

	accepting Outage
	applying  Outage
	settling  Outage
	fruitless fruitless
	// pausedAt is since when the engine is paused, in Unix nanoseconds; 0 for not.
	pausedAt atomic.Int64
	// unanswered is when the first accept began after the last that the broker answered, in
	// Unix nanoseconds; 0 for none.
	unanswered atomic.Int64
	// step is when a slot last took a step, idle when an accept last found nothing,
	// and hung since when accepts do nothing but hang; in Unix nanoseconds, 0 for not.
	step, idle, hung atomic.Int64

	// accepts are calls of Accept that nobody may be waiting for any more.
	accepts sync.WaitGroup
	// endings are holds whose slots have gone on.
	endings sync.WaitGroup
}

// New returns an engine that takes sessions from the acceptor and gives their
// messages to the handler.
func New(cfg Config, acceptor Acceptor, handler Handler, log zerolog.Logger) *Engine {
	return &Engine{
		cfg:           cfg,
		acceptor:      acceptor,
		handler:       handler,
		log:           log,
		acceptLimiter: newAcceptLimiter(cfg.AcceptFloor, cfg.MaxSessions),
		inHand:        inHand{left: map[*hold]left{}},
		budget:        newBudget(cfg.MaxBytes),
		atWork:        newBudget(cfg.MaxBytes),
		pace:          newPace(),
		throttling:    &zerolog.BurstSampler{Burst: 2, Period: 10 * time.Second},
		emptyHanded:   &zerolog.BurstSampler{Burst: 2, Period: 10 * time.Second},
		circuit:       newCircuit(cfg.RetryInitial, cfg.RetryMax),
		rests:         rests{initial: cfg.RestInitial, most: cfg.RestMax, room: restRoom * cfg.MaxSessions, roomBytes: cfg.MaxBytes / 2, last: map[string]rest{}},
		undecodable:   undecodable{most: cfg.RestMax, last: map[string]*stuck{}},
		idlePolicy:    newIdlePolicy(cfg.MaxSessions-cfg.AcceptFloor, cfg.KeepTime),
	}
}

// Counts is what the engine has done.
func (e *Engine) Counts() *Counts { return &e.counts }

// BytesInFlight is how many bytes of messages are asked for and not settled: what
// has come as it weighs, what has not as it is expected to.
func (e *Engine) BytesInFlight() int64 { return e.budget.inUse() }

// Accepting follows the accepts: whether the broker can be reached.
func (e *Engine) Accepting() *Outage { return &e.accepting }

// Applying follows the applies: whether the handler can do its work.
func (e *Engine) Applying() *Outage { return &e.applying }

// Settling follows the settlements: whether the broker throttles them.
func (e *Engine) Settling() *Outage { return &e.settling }

// Undecodable are the sessions in which a message could not be decoded lately, and since
// when the first of them is one; none and the zero time where there is none.
func (e *Engine) Undecodable() (sessions []string, since time.Time) { return e.undecodable.sessions() }

// Idle is when the broker last said that there is nothing to do; the zero time while
// there is, at rest too.
func (e *Engine) Idle() time.Time {
	if ns := e.idle.Load(); ns > 0 && e.counts.Held.Load() == 0 && e.counts.Resting.Load() == 0 {
		return time.Unix(0, ns)
	}
	return time.Time{}
}

// Answers is told that what the handler works with answers. Where there is nothing to
// do, the broker answers as well, and what has failed here others have done since: so the
// outages are over, though no success of this engine shows it.
func (e *Engine) Answers() {
	if e.Idle().IsZero() {
		return
	}
	if lasted, ended := e.applying.Recovered(); ended {
		e.log.Info().Dur("lasted_ms", lasted).Msg("applying messages would work again")
	}
	if lasted, ended := e.settling.Recovered(); ended {
		e.log.Info().Dur("lasted_ms", lasted).Msg("settling messages would work again")
	}
}

// StallTime is how long all slots together may take no step. Every step has a deadline, at
// most half of it: the longest is an accept, by which the configuration bounds ACCEPT_TIME.
const StallTime = 10 * time.Minute

// Stalled returns an error when the engine makes no progress and only a new
// process would help: accepts hang again and again although their connection
// was dropped, or no slot takes a step. It asks no dependency, and an outage of
// one is no stall.
func (e *Engine) Stalled() error {
	if since := e.hung.Load(); since > 0 {
		if hung := time.Since(time.Unix(0, since)); hung > 3*(e.cfg.AcceptTime+e.cfg.AcceptGrace) {
			return fmt.Errorf("accepts have hung for %s, on new connections too", hung.Round(time.Second))
		}
	}
	if step := e.step.Load(); step > 0 && time.Since(time.Unix(0, step)) > StallTime {
		return fmt.Errorf("no slot has taken a step for %s", StallTime)
	}
	return nil
}

// Run works until ctx ends, then drains. It returns nil when every session was
// given back in time.
func (e *Engine) Run(ctx context.Context) error {
	e.step.Store(time.Now().UnixNano())
	defer e.step.Store(0)
	work, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	drained := make(chan struct{})
	var slots, drain errgroup.Group
	drain.Go(func() error {
		select {
		case <-drained:
			return nil
		case <-ctx.Done():
		}
		deadline := time.NewTimer(e.cfg.DrainTime - min(e.cfg.CloseTime, e.cfg.DrainTime/2))
		defer deadline.Stop()
		select {
		case <-drained:
		case <-deadline.C:
			cut(errDrained)
		}
		return nil
	})
	for slot := range e.cfg.MaxSessions {
		slots.Go(func() error {
			e.slot(ctx, work, slot)
			return nil
		})
	}
	_ = slots.Wait()
	e.endings.Wait()
	e.rests.resting.Wait()
	close(drained)
	_ = drain.Wait()
	return e.joinAccepts()
}

// slot accepts a session, holds it, and starts over, until ctx ends.
func (e *Engine) slot(ctx, work context.Context, slot int) {
	wait := backoff.Backoff{Initial: e.cfg.RetryInitial, Max: e.cfg.RetryMax}
	var before *ending // the hold before, while it ends beside this slot
	for e.acceptLimiter.enter(ctx) && e.resumed(ctx) && e.budget.room(ctx) {
		done, ok := e.circuit.enter(ctx)
		if !ok {
			return
		}
		receiver, err := e.accept(ctx, slot)
		done()
		e.step.Store(time.Now().UnixNano())
		e.acceptLimiter.leave(err == nil)
		switch {
		case err != nil:
		case e.paused():
			e.release(ctx, receiver) // it came to an accept that waited when the pause began
		default:
			this := e.hold(ctx, work, receiver)
			if before != nil { // no more than one ends beside the one that is held
				err = before.wait()
			}
			known := before != nil
			if before = this; this.over() {
				err, before, known = errors.Join(err, this.wait()), nil, true
			}
			if !known {
				continue
			}
		}
		switch {
		case err == nil || errors.Is(err, ErrNoSession) || errors.Is(err, ErrRest) && !errors.Is(err, errCrowded):
			wait.Reset()
		case ctx.Err() != nil:
			return
		default:
			_ = e.afterFailure(ctx, &wait, receiver == nil, err)
		}
	}
}

// afterFailure waits before the slot accepts again: as long as the broker asks to,
// where it throttled this accept and lets others in.
func (e *Engine) afterFailure(ctx context.Context, wait *backoff.Backoff, accepting bool, err error) error {
	if busy, throttled := asBusy(err); throttled && accepting && !e.circuit.isOpen() {
		return busy.wait(ctx)
	}
	return wait.Wait(ctx)
}

// resumeEvery is how often a paused slot looks whether it may go on.
const resumeEvery = time.Second

// paused tells that no session is to be held.
func (e *Engine) paused() bool { return e.cfg.Paused != nil && e.cfg.Paused() }

// Paused is since when no more sessions are held because the engine is paused; the
// zero time where it is not.
func (e *Engine) Paused() time.Time {
	if ns := e.pausedAt.Load(); ns > 0 {
		return time.Unix(0, ns)
	}
	return time.Time{}
}

// resumed waits while the engine is paused; false when ctx ended first.
func (e *Engine) resumed(ctx context.Context) bool {
	if !e.paused() {
		return true
	}
	e.pausedAt.CompareAndSwap(0, time.Now().UnixNano())
	defer e.pausedAt.Store(0)
	ticker := time.NewTicker(resumeEvery)
	defer ticker.Stop()
	for e.paused() {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
		// The pause is no stall, no silence of the broker, and no idleness. Whether accepts
		// would still hang nobody knows.
		e.hung.Store(0)
		e.idle.Store(0)
		e.step.Store(time.Now().UnixNano())
		e.unanswered.Store(0)
	}
	return true
}

// joinAccepts waits for accepts that the watchdog gave up. The connections they
// hang on are dropped by then, so they end; if one does not, that is said.
func (e *Engine) joinAccepts() error {
	ended := make(chan struct{})
	var join errgroup.Group
	join.Go(func() error {
		e.accepts.Wait()
		close(ended)
		return nil
	})
	limit := time.NewTimer(e.cfg.CloseTime)
	defer limit.Stop()
	select {
	case <-ended:
		return join.Wait()
	case <-limit.C:
		return fmt.Errorf("stop accepting sessions: accepts still hang %s after they were cancelled", e.cfg.CloseTime)
	}
}
