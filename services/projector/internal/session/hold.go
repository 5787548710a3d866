package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"changerelay/services/projector/internal/backoff"
)

// Reasons for which a hold ends with messages that are not settled.
var (
	errInversion = errors.New("the broker delivered messages out of order")
	errCrowded   = errors.New("there is no room to leave the session alone")
	errGaveUp    = errors.New("the messages could not be applied for too long")
)

// hold is one session for as long as this process works on it. All fields but
// the lock belong to the goroutine of the slot. What settles behind it only reads
// what does not change.
type hold struct {
	*Engine
	receiver Receiver
	applier  Applier
	lock     *lock
	share    share
	applies  share  // of what is being applied
	scales   scales // of this session
	log      zerolog.Logger
	began    time.Time
	// steady: the session is asked for one message at a time. Where it comes, no
	// credit is left on the link, so that the next one can be waited for.
	steady bool
	// single: a message could not be decoded here lately. The session is asked for one
	// message at a time, which is settled before the next comes. stuck: it is to be left
	// alone.
	single, stuck bool
	// quickest is the least time between a message's enqueuing, by the broker's
	// clock, and its receipt, by ours; of a steady session.
	quickest time.Duration
	// owed is how many messages may still come that were asked for: credit that is
	// left on the link.
	owed int
	// short: the last receive brought fewer messages than it waited for.
	short bool
	pipeline
	// empty: the session had run empty when the hold ended.
	empty bool
	// firstReceive is how long the first message took: what a round trip costs
	// on this link.
	firstReceive time.Duration
	received     int
	lastNumber   int64
	heaviest     int64 // of the messages received, in bytes as they came
}

// hold works on one session until it is to be given back, and has it given back. What
// it returns ends with an error when the session went back with messages not settled.
func (e *Engine) hold(draining, work context.Context, receiver Receiver) *ending {
	e.counts.Held.Add(1)
	ctx, end := context.WithCancelCause(work)
	single, stuck := e.undecodable.begins(receiver.SessionID())
	h := &hold{
		Engine:   e,
		receiver: receiver,
		applier:  e.handler.Hold(receiver.SessionID()),
		lock:     newLock(receiver.LockedUntil(), e.cfg.LockMargin, func() { end(errLockEnds) }),
		log:      e.log.With().Str("session_id", receiver.SessionID()).Logger(),
		share:    share{budget: e.budget},
		applies:  share{budget: e.atWork},
		began:    time.Now(),
		steady:   e.idlePolicy.began(receiver.SessionID()),
		single:   single,
		stuck:    stuck,
		pipeline: pipeline{end: end, wary: single || e.rests.lately(receiver.SessionID())},
	}
	var keeper sync.WaitGroup
	keeper.Go(func() { end(h.lock.keep(ctx, receiver.RenewLock)) })

	err := h.run(draining, ctx)
	finish := func() error {
		defer e.counts.Held.Add(-1)
		defer func() { e.idlePolicy.ended(receiver.SessionID(), h.empty) }()
		return h.finish(draining, ctx, &keeper, err)
	}
	if err == nil && h.settler != nil {
		return e.behind(finish)
	}
	return ended(finish())
}

// finish waits for what is settled behind the hold, ends it, which had ended with err,
// and has its session given back.
func (h *hold) finish(draining, ctx context.Context, keeper *sync.WaitGroup, err error) error {
	if failed := h.settled(); err == nil {
		err = failed
	}
	if cause := context.Cause(ctx); cause != nil && err != nil && !errors.Is(err, ErrUndecodable) {
		err = cause
	}
	h.end(errReleased)
	keeper.Wait()
	h.undecodable.ended(h.receiver.SessionID(), err, h)
	if !h.giveBack(draining, err) && errors.Is(err, ErrRest) {
		err = errors.Join(errCrowded, err)
	}
	h.share.set(0) // not before, while what was asked for may still come
	return h.report(err)
}

// run receives, applies and settles until the session is to be given back: nil
// when everything that was received is settled.
func (h *hold) run(draining, ctx context.Context) error {
	waiting, cancel := context.WithCancel(ctx) // what is waited for until draining begins
	defer cancel()
	stop := context.AfterFunc(draining, cancel)
	defer stop()
	if h.stuck {
		return fmt.Errorf("%w: %w", ErrRest, errStuck)
	}
	for {
		asked, err := h.asks(waiting, ctx)
		if asked == 0 || err != nil {
			return err
		}
		messages, err := h.receive(waiting, ctx, asked)
		if errors.Is(err, ErrUndecodable) {
			h.owed = max(h.owed, asked)
			return err // what has come before it cannot be settled any more
		}
		if len(messages) == 0 {
			h.empty = err == nil && !h.steady
			if err == nil && h.received == 0 && waiting.Err() == nil {
				h.noteNothing()
			}
			return err
		}
		h.fruitless.end()
		each := h.weigh(messages, asked)
		if err := h.checkOrder(messages); err != nil {
			return err
		}
		if err == nil && draining.Err() == nil {
			err = h.askAhead(ctx)
		}
		if err := h.processAll(draining, waiting, ctx, messages, each); err != nil {
			return err
		}
		if err != nil || draining.Err() != nil || h.over() {
			h.empty = err == nil && h.short
			return err
		}
	}
}

// noteNothing says rarely that a session came without a message. One whose first message
// takes longer than it is waited for is granted again and again, and never applied.
func (h *hold) noteNothing() {
	h.counts.HeldNothing.Add(1)
	h.fruitless.note(h.firstReceive)
	log := h.log.Sample(h.emptyHanded)
	log.Warn().Dur("waited_ms", h.firstReceive).Msg("the session was granted, and no message of it came in time")
}

// over tells whether nothing more is to come: what was asked for has not come while
// it was waited for, or the session has had its share, and all of what was asked for.
func (h *hold) over() bool {
	return h.carried() == 0 && (h.short || h.spent() && h.owed == 0)
}

// carried is how many messages have come that nobody has asked for yet.
func (h *hold) carried() int {
	if carrier, ok := h.receiver.(Carrier); ok {
		return carrier.Carried()
	}
	return 0
}

// checkOrder refuses a batch in which a broker's number does not rise. The
// overtaken message would be refused by the position guard, and lost.
func (h *hold) checkOrder(messages []Message) error {
	for i := range messages {
		if messages[i].SequenceNumber <= h.lastNumber {
			h.counts.Inversions.Add(1)
			return fmt.Errorf("%w: number %d after %d", errInversion, messages[i].SequenceNumber, h.lastNumber)
		}
		h.lastNumber = messages[i].SequenceNumber
	}
	return nil
}

// processAll processes what was received, in parts where that weighs more than was
// expected: unpacked, all of it would take more memory than there is for messages. A
// part waits for its turn, until draining begins. weights are what each message weighs.
func (h *hold) processAll(draining, waiting, ctx context.Context, messages []Message, weights []int64) error {
	defer func() { h.after = nil }()
	for first := true; len(messages) > 0; first = false {
		n, sum := lightest(weights, h.budget.each())
		h.present, h.later = sum, max(h.present+h.later-sum, 0)
		h.after = messages[n:]
		h.noteInHand(messages[:n])
		has, err := h.applies.ask(waiting, sum, sum)
		if has == 0 || !first && waiting.Err() != nil {
			h.applies.set(0)
			return fmt.Errorf("apply %d messages that wait for memory: %w", len(messages), cmp.Or(err, context.Cause(waiting)))
		}
		err = h.process(draining, ctx, messages[:n])
		h.applies.set(0)
		if err != nil {
			return err
		}
		messages, weights, h.present = messages[n:], weights[n:], 0
		h.account()
	}
	return nil
}

// process applies and settles one batch, trying again what failed for as long
// as the lock holds and RetryTime allows; while draining once, since another
// replica may do better at once.
func (h *hold) process(draining, ctx context.Context, messages []Message) error {
	wait := backoff.Backoff{Initial: h.cfg.RetryInitial, Max: h.cfg.RetryMax}
	began := time.Now()
	for {
		h.step.Store(time.Now().UnixNano())
		if _, err := h.lock.end(); err != nil {
			return err
		}
		verdicts, failure := h.applier.Apply(ctx, messages)
		if err := h.settled(); err != nil {
			return err
		}
		if failure == nil && h.maySettleBehind(verdicts) {
			h.settleBehind(ctx, messages, verdicts)
			h.recovered()
			return nil
		}
		if err := h.settle(ctx, messages[:len(verdicts)], verdicts); err != nil {
			return err
		}
		messages = messages[len(verdicts):]
		h.noteInHand(messages)
		if failure == nil {
			h.recovered()
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if errors.Is(failure, ErrNotYet) || errors.Is(failure, ErrPaused) {
			h.recovered()
			return errors.Join(failure, h.pause(draining, ctx))
		}
		if errors.Is(failure, ErrRest) {
			h.failed(failure)
			return failure
		}
		h.failed(failure)
		if draining.Err() != nil || time.Since(began) > h.cfg.RetryTime {
			return fmt.Errorf("%w: %w", errGaveUp, failure)
		}
		h.counts.Retries.Add(1)
		if err := wait.Wait(ctx); err != nil {
			return err
		}
	}
}

// notYetPause is how long a session is kept whose messages wait for another one.
const notYetPause = time.Second

// pause keeps the session for a while, so that it is not taken again at once.
func (h *hold) pause(draining, ctx context.Context) error {
	timer := time.NewTimer(notYetPause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-draining.Done():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (h *hold) failed(err error) {
	if h.applying.Failed(err) {
		h.log.Warn().Err(err).Msg("applying messages fails, trying again")
	}
}

func (h *hold) recovered() {
	if lasted, ended := h.applying.Recovered(); ended {
		h.log.Info().Dur("lasted_ms", lasted).Msg("applying messages works again")
	}
}

// spent tells whether the session has had its share.
func (h *hold) spent() bool {
	return time.Since(h.began) >= h.cfg.HoldTime || h.received >= h.cfg.HoldMessages
}

// report counts and logs how the hold ended. It returns the error, so that the
// slot waits before it accepts again: the same session may be the next.
func (h *hold) report(err error) error {
	if err == nil {
		return nil
	}
	h.counts.GivenBack.Add(1)
	switch {
	case errors.Is(err, ErrUndecodable):
		h.log.Warn().Err(err).Msg("a message of the session cannot be decoded, and all that follow it wait: see the runbook, ChangeRelayMessageUndecodable")
	case errors.Is(err, errLockEnds), errors.Is(err, errLockDoubted):
		h.counts.LocksLost.Add(1)
		h.log.Info().Err(err).Msg("session lock lost, session dropped")
	case errors.Is(err, errInversion):
		h.log.Warn().Err(err).Msg("messages out of order, session given back")
	case errors.Is(err, ErrNotYet):
		h.log.Debug().Err(err).Msg("session given back until a missing message comes")
	case errors.Is(err, ErrPaused):
		h.log.Info().Msg("session given back, no more messages are applied for now")
	case errors.Is(err, ErrRest):
		h.log.Info().Err(err).Msg("session left alone for a while")
	case errors.Is(err, errGaveUp):
		h.log.Warn().Err(err).Msg("session given back without its messages applied")
	default:
		h.log.Info().Err(err).Msg("session given back early")
	}
	return err
}
