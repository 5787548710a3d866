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
