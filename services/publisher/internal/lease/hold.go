package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// errGone says that a renewal found the record without us.
var errGone = errors.New("the record names another holder")

// hold runs lead under the lease, renews meanwhile, and releases afterwards. It
// returns an error that wraps ErrLost when the lease ended first, ErrDisplaced,
// or else what lead returned.
func (e *Elector) hold(ctx context.Context, deadline time.Time, lead Lead) error {
	// The led work and the renewals outlive ctx: a leader that was asked to stop
	// leads until it has finished.
	work, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	renewals, stopRenewals := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRenewals()
	tenure := startTenure(ctx.Done(), deadline, func() {
		end(fmt.Errorf("%w: not renewed within %s", ErrLost, e.config.RenewDeadline))
	})
	defer tenure.expiry.Stop()
	e.lead(deadline)
	e.log.Info().Str("incarnation", e.config.Holder.Incarnation).Int64("tenure", e.tenure).Msg("leading")

	done := make(chan error, 1)
	go func() {
		defer stopRenewals()
		done <- lead(work, tenure)
	}()
	err := e.renewWhile(renewals, tenure, end)
	led := <-done
	if err == nil && errors.Is(context.Cause(work), ErrLost) {
		err = context.Cause(work)
	}
	if !errors.Is(err, ErrDisplaced) {
		e.release(ctx)
	}
	if err != nil {
		return err
	}
	return led
}

// renewal is one call to renew, and what became of it.
type renewal struct {
	sentAt time.Time
	record Record
	err    error
}

// renewWhile renews until ctx ends with the led work, then returns nil; or
// until the record names another holder, then it ends the work and says who.
// That the local deadline passes is the tenure's own affair.
//
// A renewal that is not answered soon is followed by another, and may be answered
// all the same until the deadline: a call that hangs costs no leadership, and
// neither does a majority that takes its time.
func (e *Elector) renewWhile(ctx context.Context, tenure *Tenure, end context.CancelCauseFunc) error {
	ctx, cancel := context.WithCancel(ctx)
	var calls sync.WaitGroup
	defer calls.Wait()
	defer cancel()
	answers := make(chan renewal)
	next := time.NewTimer(e.untilHeartbeat(tenure))
	defer next.Stop()
	// When the latest call was sent, zero once one succeeds, and when the latest that succeeded was.
	var awaited, good time.Time
	for tenure.Err() == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
			if !awaited.IsZero() {
				e.renewFailed(fmt.Errorf("renew lease %q: no answer within %s", e.config.Name, time.Since(awaited)))
			}
			sentAt := time.Now()
			awaited = sentAt
			calls.Go(func() { e.renew(ctx, tenure, sentAt, answers) })
			next.Reset(e.writes.Bound())
		case answer := <-answers:
			err := e.renewed(tenure, answer)
			switch {
			case ctx.Err() != nil:
				return nil
			case err == nil:
				awaited, good = time.Time{}, answer.sentAt
				next.Reset(e.untilHeartbeat(tenure))
			case errors.Is(err, errGone):
				err = e.displacement(ctx)
				end(err)
				return err
			case answer.sentAt.After(good):
				awaited = time.Time{}
				e.renewFailed(err)
				next.Reset(e.config.renewRetry()/2 + rand.N(e.config.renewRetry()/2+1))
			}
		}
	}
	return nil
}

// renew makes one attempt, which ends when the lease can be trusted no longer unless
// another succeeds.
func (e *Elector) renew(ctx context.Context, tenure *Tenure, sentAt time.Time, answers chan<- renewal) {
	attempt, cancel := context.WithDeadline(ctx, tenure.Deadline())
	defer cancel()
	record, err := e.store.Renew(attempt, e.holder(), e.config.TTL)
	select {
	case answers <- renewal{sentAt, record, err}:
	case <-ctx.Done():
	}
}

// renewed makes what it can of an answer.
func (e *Elector) renewed(tenure *Tenure, answer renewal) error {
	took := time.Since(answer.sentAt)
	switch {
	case answer.err != nil:
		return fmt.Errorf("renew lease %q: %w", e.config.Name, answer.err)
	case answer.record.Holder != e.holder():
		return errGone
	case !tenure.extend(answer.sentAt.Add(e.config.RenewDeadline)):
		return fmt.Errorf("renew lease %q: answered after %s, too late", e.config.Name, took)
	}
	e.writes.Note(took, nil)
	e.stored(answer.record)
	e.trust(tenure.Deadline())
	return nil
}

// displacement finds out who took the lease: ErrDisplaced when it was taken
// under our own id, else an error that wraps ErrLost.
func (e *Elector) displacement(ctx context.Context) error {
	record, err := e.read(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLost, errGone)
	}
	e.observe(record)
	if record.Live() && record.Holder.ID == e.config.Holder.ID && !record.Holder.SameProcess(e.config.Holder) {
		return fmt.Errorf("%w: the lease is now held by incarnation %q", ErrDisplaced, record.Holder.Incarnation)
	}
	return fmt.Errorf("%w: %w", ErrLost, errGone)
}

// release frees the lease so that another need not wait for its end. It is not
// worth more than one attempt: a lost release costs the rest of the lease.
func (e *Elector) release(ctx context.Context) {
	var released bool
	err := e.write(context.WithoutCancel(ctx), e.config.Longest(), func(attempt context.Context) (err error) {
		released, err = e.store.Release(attempt, e.holder())
		return err
	})
	switch {
	case err != nil:
		e.releaseFailed()
		e.log.Warn().Err(err).Msg("lease not released, another takes it when it is over")
	case released:
		e.log.Info().Msg("lease released")
	}
}

// untilHeartbeat is the time until the next renewal, which is counted, as the trust is,
// from before the last good one was sent.
func (e *Elector) untilHeartbeat(tenure *Tenure) time.Duration {
	heartbeat := e.config.Heartbeat + rand.N(e.config.latestHeartbeat()-e.config.Heartbeat+1)
	return time.Until(tenure.Deadline()) - e.config.RenewDeadline + heartbeat
}
