package lease_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/lease/leasetest"
)

// TestAside_WhoIsNotEligibleWatchesAndTakesNothing has a lead give up a lease whose
// release is lost, and another take it; it leads again once it is eligible.
func TestAside_WhoIsNotEligibleWatchesAndTakesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var eligible atomic.Bool
		var releases atomic.Int64
		eligible.Store(true)
		store := &leasetest.Store{}
		store.Fault = func(op leasetest.Op, _ lease.Holder) leasetest.Fault {
			if op == leasetest.Release && releases.Add(1) == 1 {
				return leasetest.Fault{Err: leasetest.ErrInjected}
			}
			return leasetest.Fault{}
		}
		led := make(chan struct{}, 100)
		aside := lease.New(lease.Config{
			Name: "orders", Holder: lease.Holder{ID: "a", Incarnation: "1"}, TTL: ttl, RenewDeadline: renewDeadline, Heartbeat: heartbeat,
			Eligible: eligible.Load,
		}, store, store, zerolog.Nop())
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- aside.Run(ctx, func(context.Context, *lease.Tenure) error {
				led <- struct{}{}
				eligible.Store(false)
				return lease.ErrAside
			})
		}()
		time.Sleep(time.Hour)
		if n, role := len(led), aside.State().Role; n != 1 || role != lease.Standby {
			t.Errorf("it led %d times, and is %s, want once, and standing by", n, role)
		}
		if reads := store.Calls(leasetest.Read); reads > int(2*time.Hour/heartbeat)*5 {
			t.Errorf("it looked %d times in an hour", reads)
		}
		other := start(t, "b", "2", store)
		<-other.leading
		other.stop()
		<-other.done
		eligible.Store(true)
		<-led
		<-led
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
	})
}
