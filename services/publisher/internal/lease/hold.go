package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

// renewWhile renews until ctx ends with the led work, then returns nil; or
// until the record names another holder, then it ends the work and says who.
// That the local deadline passes is the tenure's own affair.
func (e *Elector) renewWhile(ctx context.Context, tenure *Tenure, end context.CancelCauseFunc) error {
	next := time.NewTimer(e.nextHeartbeat())
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
		}
		err := e.renew(ctx, tenure)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			next.Reset(e.nextHeartbeat())
		case errors.Is(err, errGone):
			err = e.displacement(ctx)
			end(err)
			return err
		default:
			e.renewFailed(err)
			next.Reset(e.config.renewRetry()/2 + rand.N(e.config.renewRetry()/2+1))
		}
		if tenure.Err() != nil {
			return nil
		}
	}
}

// renew makes one attempt, which ends before the lease can be trusted no longer.
func (e *Elector) renew(ctx context.Context, tenure *Tenure) error {
	sentAt := time.Now()
	attempt, cancel := context.WithTimeout(ctx, min(e.config.attempt(), time.Until(tenure.Deadline())))
	defer cancel()
	record, err := e.store.Renew(attempt, e.holder(), e.config.TTL)
	switch {
	case err != nil:
		return fmt.Errorf("renew lease %q: %w", e.config.Name, err)
	case record.Holder != e.holder():
		return errGone
	case !tenure.extend(sentAt.Add(e.config.RenewDeadline)):
		return fmt.Errorf("renew lease %q: answered after %s, too late", e.config.Name, time.Since(sentAt))
	}
	e.stored(record)
	e.trust(tenure.Deadline())
	return nil
}

// displacement finds out who took the lease: ErrDisplaced when it was taken
// under our own id, else an error that wraps ErrLost.
func (e *Elector) displacement(ctx context.Context) error {
	attempt, cancel := context.WithTimeout(ctx, e.config.attempt())
	defer cancel()
	record, err := e.store.Read(attempt)
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
	attempt, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.config.attempt())
	defer cancel()
	released, err := e.store.Release(attempt, e.holder())
	switch {
	case err != nil:
		e.releaseFailed()
		e.log.Warn().Err(err).Msg("lease not released, another takes it when it is over")
	case released:
		e.log.Info().Msg("lease released")
	}
}

func (e *Elector) nextHeartbeat() time.Duration {
	return e.config.Heartbeat + rand.N(e.config.latestHeartbeat()-e.config.Heartbeat+1)
}
