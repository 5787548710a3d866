package session

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	errHung       = errors.New("the accept neither answered nor failed in time")
	errUnanswered = errors.New("the broker has answered no accept for some time")
)

// unansweredAccepts is how many accept times may go by without any answer of
// the broker, be it only that there is no session, before that is trouble.
const unansweredAccepts = 3

// accepted is how an accept ended.
type accepted struct {
	receiver Receiver
	err      error
	// timedOut tells that its time was over, or that it was cancelled.
	timedOut bool
}

// accept waits for a session. It returns although Accept hangs, and closes a
// session that comes after it gave up.
func (e *Engine) accept(ctx context.Context, slot int) (Receiver, error) {
	e.counts.Accepting.Add(1)
	defer e.counts.Accepting.Add(-1)

	e.unanswered.CompareAndSwap(0, time.Now().UnixNano())
	attempt, cancel := context.WithTimeout(ctx, e.cfg.AcceptTime)
	result := make(chan accepted)
	late := make(chan struct{})
	e.accepts.Go(func() {
		defer cancel()
		receiver, err := e.acceptor.Accept(attempt, slot)
		select {
		case result <- accepted{receiver, err, attempt.Err() != nil}:
		case <-late:
			e.refuse(ctx, receiver, err)
		}
	})
	watchdog := time.NewTimer(e.cfg.AcceptTime + e.cfg.AcceptGrace)
	defer watchdog.Stop()
	select {
	case a := <-result:
		e.hung.Store(0)
		return e.judge(ctx, slot, a)
	case <-watchdog.C:
		close(late)
		e.hung.CompareAndSwap(0, time.Now().Add(-e.cfg.AcceptTime-e.cfg.AcceptGrace).UnixNano())
		return nil, e.doubt(slot, e.cfg.AcceptTime+e.cfg.AcceptGrace, errHung)
	}
}

// doubt counts an accept that hangs and has its connection dropped where that has been
// silent for so long.
func (e *Engine) doubt(slot int, silent time.Duration, err error) error {
	e.counts.AcceptsHung.Add(1)
	e.acceptor.Doubt(slot, time.Now().Add(-silent))
	if e.accepting.FailedSince(err, e.unansweredSince()) {
		e.log.Warn().Err(err).Msg("accepting sessions hangs, trying again")
	}
	return err
}

// unansweredSince is since when the broker is asked for sessions and has answered nothing:
// now where it has since it was last asked.
func (e *Engine) unansweredSince() time.Time {
	if ns := e.unanswered.Load(); ns > 0 {
		return time.Unix(0, ns)
	}
	return time.Now()
}

// judge counts an accept's result and keeps the outage's state.
func (e *Engine) judge(ctx context.Context, slot int, a accepted) (Receiver, error) {
	switch {
	case a.err == nil:
		e.counts.Accepted.Add(1)
		e.idle.Store(0)
	case errors.Is(a.err, ErrNoSession):
		e.counts.AcceptedNone.Add(1)
		e.idle.Store(time.Now().UnixNano())
	case ctx.Err() != nil:
		return nil, a.err
	case a.timedOut:
		if silent := unansweredAccepts * e.cfg.AcceptTime; time.Since(e.unansweredSince()) >= silent {
			return nil, e.doubt(slot, silent, errUnanswered)
		}
		// The broker's answer was late by a hair, or it does not answer.
		e.counts.AcceptsUnanswered.Add(1)
		return nil, ErrNoSession
	default:
		e.circuit.failed(a.err)
		e.counts.AcceptsFailed.Add(1)
		if e.acceptFailed(a.err) {
			e.log.Warn().Err(a.err).Msg("accepting sessions fails, trying again")
		}
		return nil, fmt.Errorf("accept a session: %w", a.err)
	}
	e.circuit.answered()
	e.unanswered.Store(0)
	if lasted, ended := e.accepting.Recovered(); ended {
		e.log.Info().Dur("lasted_ms", lasted).Msg("accepting sessions works again")
	}
	return a.receiver, a.err
}

// acceptFailed notes in the state of the outage that an accept failed, and tells whether that
// is news.
func (e *Engine) acceptFailed(err error) (first bool) {
	if _, throttled := asBusy(err); throttled {
		return e.accepting.Throttled(err)
	}
	return e.accepting.Failed(err)
}

// refuse gives back a session that came when nobody waited for it any more.
func (e *Engine) refuse(ctx context.Context, receiver Receiver, err error) {
	if err != nil {
		return
	}
	e.counts.AcceptedLate.Add(1)
	e.release(ctx, receiver)
}

// release gives a session back, in its own time whatever else has ended.
func (e *Engine) release(ctx context.Context, receiver Receiver) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.cfg.CloseTime)
	defer cancel()
	if err := receiver.Close(ctx); err != nil {
		e.log.Debug().Err(err).Str("session_id", receiver.SessionID()).Msg("the session was not given back cleanly")
	}
}
