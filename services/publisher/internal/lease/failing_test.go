package lease_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/lease/leasetest"
)

// TestFailing_AStoreThatOnlyAnswersReadsFailsUntilItTakesWrites has two instances read for
// an hour that the lease is free, and fail to take it.
func TestFailing_AStoreThatOnlyAnswersReadsFailsUntilItTakesWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		store := &leasetest.Store{}
		store.Fault = func(op leasetest.Op, _ lease.Holder) leasetest.Fault {
			if full.Load() && op != leasetest.Read {
				return leasetest.Fault{Err: leasetest.ErrInjected}
			}
			return leasetest.Fault{}
		}
		a := start(t, "a", "1", store)
		<-a.leading
		b := start(t, "b", "1", store)
		synctest.Wait()
		full.Store(true)
		before := time.Now()
		time.Sleep(time.Hour)
		for _, i := range []*instance{a, b} {
			s := i.State()
			if s.Role != lease.Standby || s.LastError == "" || s.FailingSince.IsZero() || s.FailingSince.After(before.Add(2*ttl)) {
				t.Errorf("%s is %s, failing since %s with %q, want a standby that says so since %s at about the time of the lease's end",
					i.holder.ID, s.Role, s.FailingSince, s.LastError, before)
			}
		}
		full.Store(false)
		time.Sleep(2 * ttl)
		for _, i := range []*instance{a, b} {
			if s := i.State(); s.LastError != "" || !s.FailingSince.IsZero() {
				t.Errorf("%s, a %s, is failing since %s with %q after the store takes writes", i.holder.ID, s.Role, s.FailingSince, s.LastError)
			}
		}
		_ = b.quit()
		_ = a.quit()
	})
}

// TestFailing_ARowOfFailuresIsToldOnce looks at the log of an instance that cannot take a
// free lease for an hour.
func TestFailing_ARowOfFailuresIsToldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &leasetest.Store{Fault: func(op leasetest.Op, _ lease.Holder) leasetest.Fault {
			if op == leasetest.Take {
				return leasetest.Fault{Err: leasetest.ErrInjected}
			}
			return leasetest.Fault{}
		}}
		var log bytes.Buffer
		a := lease.New(lease.Config{
			Name: "orders", Holder: lease.Holder{ID: "a", Incarnation: "1"}, TTL: ttl, RenewDeadline: renewDeadline, Heartbeat: heartbeat,
		}, store, store, zerolog.New(&log))
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		if err := a.Run(ctx, func(context.Context, *lease.Tenure) error { return errors.New("led") }); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		if n := strings.Count(log.String(), "trying again"); n != 1 {
			t.Errorf("it was told %d times in an hour that the lease cannot be taken, want once", n)
		}
	})
}

// TestFailing_ARenewalThatHangsIsForgottenOnceAnotherSucceeds has one renewal hang until
// its deadline, after the next has succeeded.
func TestFailing_ARenewalThatHangsIsForgottenOnceAnotherSucceeds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var hung atomic.Bool
		a := start(t, "a", "1", &leasetest.Store{Fault: func(op leasetest.Op, _ lease.Holder) leasetest.Fault {
			return leasetest.Fault{Hang: op == leasetest.Renew && hung.CompareAndSwap(false, true)}
		}})
		<-a.leading
		time.Sleep(renewDeadline - 2*time.Second)
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			if s := a.State(); !s.FailingSince.IsZero() || s.RenewFailures != 1 {
				t.Fatalf("got %d failures, and one since %s with %q; want one that is over", s.RenewFailures, s.FailingSince, s.LastError)
			}
		}
		_ = a.quit()
	})
}

// TestFailing_AnAnswerThatComesLateTakesNoTrustBack has a renewal answered after the next.
func TestFailing_AnAnswerThatComesLateTakesNoTrustBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var late atomic.Bool
		a := start(t, "a", "1", &leasetest.Store{Fault: func(op leasetest.Op, _ lease.Holder) leasetest.Fault {
			if op == leasetest.Renew && late.CompareAndSwap(false, true) {
				return leasetest.Fault{Lag: 3 * time.Second}
			}
			return leasetest.Fault{}
		}})
		<-a.leading
		trusted := a.State().TrustedUntil
		for range 120 {
			time.Sleep(100 * time.Millisecond)
			if now := a.State().TrustedUntil; now.Before(trusted) {
				t.Fatalf("the lease is trusted until %s, and was until %s", now, trusted)
			}
			trusted = a.State().TrustedUntil
		}
		_ = a.quit()
	})
}

// lagging is a store a majority of which has each change so much later.
func lagging(lag *atomic.Int64) *leasetest.Store {
	return &leasetest.Store{Fault: func(leasetest.Op, lease.Holder) leasetest.Fault {
		return leasetest.Fault{Lag: time.Duration(lag.Load())}
	}}
}

// TestLag_ALeaderIsFoundAndKeptWhereAMajorityIsBehind has a majority lag by more than an
// answer usually takes, and by as much as leaves time for a renewal.
func TestLag_ALeaderIsFoundAndKeptWhereAMajorityIsBehind(t *testing.T) {
	t.Parallel()
	for _, behind := range []time.Duration{time.Second, 3 * time.Second, 4400 * time.Millisecond} {
		t.Run(behind.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var lag atomic.Int64
				lag.Store(int64(behind))
				store := lagging(&lag)
				a := start(t, "a", "1", store)
				time.Sleep(2 * ttl)
				b := start(t, "b", "1", store)
				time.Sleep(time.Hour)
				if s := a.State(); !a.leads() || b.leads() || s.Takeovers != 1 || s.LastError != "" || s.RenewFailures > 0 {
					t.Errorf("the first is %s after %d takeovers and %d failed renewals, with %q, and the second %s; want one leader, kept for an hour",
						s.Role, s.Takeovers, s.RenewFailures, s.LastError, b.State().Role)
				}
				_ = b.quit()
				if err := a.quit(); err != nil {
					t.Errorf("Run = %v, want nil", err)
				}
			})
		})
	}
}

// TestLag_ALeaderIsKeptWhenAMajorityFallsBehindAllAtOnce has a majority that was at hand
// lag between two renewals.
func TestLag_ALeaderIsKeptWhenAMajorityFallsBehindAllAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lag atomic.Int64
		a := start(t, "a", "1", lagging(&lag))
		<-a.leading
		for range 20 {
			time.Sleep(time.Minute)
			lag.Store(int64(3 * time.Second))
			time.Sleep(time.Minute)
			lag.Store(0)
		}
		if s := a.State(); !a.leads() || s.Takeovers != 1 || s.LastError != "" || s.RenewFailures > 60 {
			t.Errorf("it is %s after %d takeovers and %d failed renewals, with %q; want a leader that was never lost, and a few for each lag",
				s.Role, s.Takeovers, s.RenewFailures, s.LastError)
		}
		_ = a.quit()
	})
}

// TestLag_ALeaderThatCannotRenewStopsAndSaysSoUntilTheLagEnds has a majority lag by more
// than a lease lasts, for an hour.
func TestLag_ALeaderThatCannotRenewStopsAndSaysSoUntilTheLagEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lag atomic.Int64
		store := lagging(&lag)
		a := start(t, "a", "1", store)
		<-a.leading
		began := time.Now()
		lag.Store(int64(2 * ttl))
		if err := <-a.ended; !errors.Is(err, lease.ErrLost) || time.Since(began) > renewDeadline {
			t.Errorf("the led work ended with %v after %s, want the loss within %s", err, time.Since(began), renewDeadline)
		}
		time.Sleep(time.Hour)
		if s := a.State(); s.Takeovers != 1 || s.LastError == "" || s.FailingSince.After(began.Add(renewDeadline)) {
			t.Errorf("got %d takeovers and the failure %q since %s, want none more, and a failure since about %s",
				s.Takeovers, s.LastError, s.FailingSince, began)
		}
		lag.Store(0)
		began = time.Now()
		<-a.leading
		if took := time.Since(began); took > renewDeadline {
			t.Errorf("it took %s to lead again when the lag had ended, want no more than %s", took, renewDeadline)
		}
		_ = a.quit()
	})
}
