package lease_test

import (
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

const (
	ttl           = 15 * time.Second
	renewDeadline = 10 * time.Second
	heartbeat     = 5 * time.Second
)

// instance is one elector in a bubble, with what its led work saw.
type instance struct {
	*lease.Elector
	holder  lease.Holder
	leading chan *lease.Tenure // one for each time that it leads
	ended   chan error         // the cause with which each led work ended
	finish  chan struct{}      // the led work returns when stopped and this is closed
	stop    context.CancelFunc
	done    chan error
}

// start runs an elector until the bubble's test ends or stop is called.
func start(t *testing.T, id, incarnation string, store *leasetest.Store, change ...func(*lease.Config)) *instance {
	t.Helper()
	config := lease.Config{
		Name:          "orders",
		Holder:        lease.Holder{ID: id, Incarnation: incarnation},
		TTL:           ttl,
		RenewDeadline: renewDeadline,
		Heartbeat:     heartbeat,
	}
	for _, c := range change {
		c(&config)
	}
	ctx, cancel := context.WithCancel(t.Context())
	i := &instance{
		Elector: lease.New(config, store, store, zerolog.Nop()),
		holder:  config.Holder,
		leading: make(chan *lease.Tenure, 100),
		ended:   make(chan error, 100),
		finish:  make(chan struct{}),
		stop:    cancel,
		done:    make(chan error, 1),
	}
	close(i.finish)
	go func() { i.done <- i.Run(ctx, i.lead) }()
	return i
}

func (i *instance) lead(ctx context.Context, tenure *lease.Tenure) error {
	i.leading <- tenure
	select {
	case <-ctx.Done():
		i.ended <- context.Cause(ctx)
		return context.Cause(ctx)
	case <-tenure.Stopping():
		<-i.finish
		i.ended <- nil
		return nil
	}
}

// quit stops the instance and returns what Run returned.
func (i *instance) quit() error {
	i.stop()
	return <-i.done
}

func (i *instance) leads() bool { return i.State().Role == lease.Leader }

func TestElector_AFreeLeaseIsTakenAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &leasetest.Store{}
		a := start(t, "a", "1", store)
		synctest.Wait()
		if !a.leads() {
			t.Error("role is", a.State().Role, "want leader")
		}
		if err := a.quit(); err != nil {
			t.Errorf("Run = %v, want nil after a stop", err)
		}
	})
}

func TestElector_ALeaderThatRenewsIsNotDisturbed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &leasetest.Store{}
		a := start(t, "a", "1", store)
		synctest.Wait()
		b := start(t, "b", "1", store)
		time.Sleep(time.Hour)
		if !a.leads() || b.leads() {
			t.Errorf("roles are %s and %s, want leader and standby", a.State().Role, b.State().Role)
		}
		if got := store.Calls(leasetest.Take); got != 1 {
			t.Errorf("%d takes in an hour, want 1: a standby reads and does not write", got)
		}
		_ = b.quit()
		_ = a.quit()
	})
}

func TestElector_ACrashedLeaderIsFollowedWithinTheRestOfItsLeaseAndASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var crashed atomic.Bool
		store := &leasetest.Store{}
		store.Fault = func(_ leasetest.Op, holder lease.Holder) leasetest.Fault {
			return leasetest.Fault{Hang: crashed.Load() && holder.ID == "a"}
		}
		a := start(t, "a", "1", store)
		synctest.Wait()
		b := start(t, "b", "1", store)
		time.Sleep(time.Minute)
		crashed.Store(true)
		rest := store.Current().Remaining
		before := time.Now()
		<-b.leading
		if took := time.Since(before); took > rest+time.Second {
			t.Errorf("followed after %s, want at most the rest of the lease, %s, and 1s", took, rest)
		}
		_ = b.quit()
		_ = a.quit()
	})
}

func TestElector_AStandbyFollowsAPlannedStopAtOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		watched bool
		limit   time.Duration
	}{
		"woken by a watch":  {watched: true, limit: 200 * time.Millisecond},
		"polling otherwise": {watched: false, limit: heartbeat/5 + 200*time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &leasetest.Store{}
				store.WatchFails = !tt.watched
				a := start(t, "a", "1", store)
				synctest.Wait()
				b := start(t, "b", "1", store)
				time.Sleep(time.Minute)
				before := time.Now()
				_ = a.quit()
				<-b.leading
				if took := time.Since(before); took > tt.limit {
					t.Errorf("followed after %s, want at most %s", took, tt.limit)
				}
				_ = b.quit()
			})
		})
	}
}

func TestElector_TheLeaseIsReleasedOnlyAfterTheLedWorkHasReturned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &leasetest.Store{}
		a := start(t, "a", "1", store)
		a.finish = make(chan struct{})
		synctest.Wait()
		b := start(t, "b", "1", store)
		a.stop()
		time.Sleep(time.Minute) // longer than the lease: it is renewed while the work finishes
		if got := store.Current(); !got.Holder.SameProcess(a.holder) || !got.Live() {
			t.Fatalf("record is %+v while the led work runs, want it live and held by a", got)
		}
		if got := store.Calls(leasetest.Release); got != 0 {
			t.Errorf("%d releases while the led work runs, want none", got)
		}
		close(a.finish)
		<-b.leading
		if err := <-a.done; err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		_ = b.quit()
	})
}

func TestElector_AnOutageShorterThanTheDeadlineCostsNoLeadership(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]leasetest.Fault{
		"calls fail":       {Err: leasetest.ErrInjected},
		"calls hang":       {Hang: true},
		"answers get lost": {Err: leasetest.ErrInjected, Applied: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var out atomic.Bool
				store := &leasetest.Store{}
				store.Fault = func(leasetest.Op, lease.Holder) leasetest.Fault {
					if out.Load() {
						return fault
					}
					return leasetest.Fault{}
				}
				a := start(t, "a", "1", store)
				synctest.Wait()
				b := start(t, "b", "1", store)
				const outages = 20
				for n := range outages {
					for renewed := a.State().TrustedUntil; a.leads() && !a.State().TrustedUntil.After(renewed); {
						time.Sleep(10 * time.Millisecond)
					}
					// The next heartbeat is in the outage, sooner or later.
					time.Sleep(heartbeat/2 + time.Duration(n)*100*time.Millisecond)
					out.Store(true)
					time.Sleep(3100 * time.Millisecond) // at most two attempts that hang are lost
					out.Store(false)
				}
				takeovers := a.State().Takeovers + b.State().Takeovers
				failures := a.State().RenewFailures + b.State().RenewFailures
				if takeovers != 1 || failures < outages-1 { // the last one may not be known to have failed
					t.Errorf("%d takeovers and %d failed renewals, want 1 and one in each outage", takeovers, failures)
				}
				_ = b.quit()
				_ = a.quit()
			})
		})
	}
}

func TestElector_TheLedWorkEndsBeforeTheLeaseCanBeOver(t *testing.T) {
	t.Parallel()
	// The server's clock runs this much faster than ours, up to the rate that
	// the margin between deadline and lease covers, and starts an hour off.
	for name, rate := range map[string]float64{
		"clocks at one rate":       1,
		"the server's clock fast":  1.45,
		"the server's clock slow":  0.6,
		"the server's clock still": 0,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var out atomic.Bool
				store := &leasetest.Store{Clock: func() time.Time {
					return began.Add(time.Hour + time.Duration(rate*float64(time.Since(began))))
				}}
				store.Fault = func(leasetest.Op, lease.Holder) leasetest.Fault { return leasetest.Fault{Hang: out.Load()} }
				a := start(t, "a", "1", store)
				tenure := <-a.leading
				time.Sleep(33 * time.Second)
				out.Store(true)
				cause := <-a.ended
				if !errors.Is(cause, lease.ErrLost) {
					t.Errorf("the led work ended with %v, want ErrLost", cause)
				}
				if !errors.Is(tenure.Err(), lease.ErrLost) {
					t.Errorf("tenure.Err = %v after the deadline, want ErrLost", tenure.Err())
				}
				if left := store.Current().Remaining; left <= 0 {
					t.Errorf("the led work ended %s after the lease was over", -left)
				}
				_ = a.quit()
			})
		})
	}
}

func TestElector_TheDeadlineCountsFromBeforeTheRenewalWasSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const latency = time.Second
		store := &leasetest.Store{}
		answers := true
		store.Fault = func(op leasetest.Op, _ lease.Holder) leasetest.Fault {
			switch {
			case !answers:
				return leasetest.Fault{Hang: true}
			case op == leasetest.Renew:
				answers = false // the last answer, and it comes late
				return leasetest.Fault{Delay: latency}
			default:
				return leasetest.Fault{}
			}
		}
		a := start(t, "a", "1", store)
		taken := time.Now()
		<-a.ended
		// The renewal was sent between one heartbeat and its jitter after the take.
		latest := taken.Add(heartbeat + heartbeat/10 + renewDeadline)
		if time.Now().After(latest) {
			t.Errorf("the led work ended %s after the latest deadline", time.Since(latest))
		}
		_ = a.quit()
	})
}

func TestElector_ALeaderWhoseRecordIsGoneStopsAndCreatesNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &leasetest.Store{}
		a := start(t, "a", "1", store)
		synctest.Wait()
		store.Fault = func(op leasetest.Op, _ lease.Holder) leasetest.Fault {
			if op == leasetest.Take { // what is there then was not taken
				return leasetest.Fault{Err: leasetest.ErrInjected}
			}
			return leasetest.Fault{}
		}
		store.Delete()
		if cause := <-a.ended; !errors.Is(cause, lease.ErrLost) {
			t.Errorf("the led work ended with %v, want ErrLost", cause)
		}
		time.Sleep(time.Minute)
		if got := store.Current(); got != (lease.Record{}) {
			t.Errorf("record is %+v, want none: a renewal must not create it", got)
		}
		_ = a.quit()
	})
}

func TestElector_ALiveLeaseOfOnesOwnIDIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &leasetest.Store{}
		_, _ = store.Take(t.Context(), lease.Claim{Holder: lease.Holder{ID: "a", Incarnation: "old", Tenure: 7}, TTL: ttl})
		before := time.Now()
		a := start(t, "a", "new", store)
		<-a.leading
		if took := time.Since(before); took < ttl || took > ttl+time.Second {
			t.Errorf("took the lease after %s, want when it was over, after %s", took, ttl)
		}
		_ = a.quit()
	})
}

func TestElector_WithUniqueIDsARestartedLeaderLeadsAtOnceAndTheOlderStops(t *testing.T) {
	t.Parallel()
	unique := func(c *lease.Config) { c.OwnIDUnique = true }
	synctest.Test(t, func(t *testing.T) {
		store := &leasetest.Store{}
		older := start(t, "a", "1", store, unique)
		synctest.Wait()
		newer := start(t, "a", "2", store, unique)
		synctest.Wait()
		if !newer.leads() {
			t.Fatal("the newer process does not lead at once")
		}
		err := <-older.done
		if !errors.Is(err, lease.ErrDisplaced) || !strings.Contains(err.Error(), `"a"`) {
			t.Errorf("Run of the older process = %v, want ErrDisplaced naming the id", err)
		}
		if cause := <-older.ended; !errors.Is(cause, lease.ErrDisplaced) {
			t.Errorf("its led work ended with %v, want ErrDisplaced", cause)
		}
		if got := store.Current(); !got.Holder.SameProcess(newer.holder) || !got.Live() {
			t.Errorf("record is %+v, want it live and held by the newer process", got)
		}
		_ = newer.quit()
	})
}

func TestElector_ALostReleaseCostsTheRestOfTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &leasetest.Store{}
		store.Fault = func(op leasetest.Op, _ lease.Holder) leasetest.Fault {
			return leasetest.Fault{Hang: op == leasetest.Release}
		}
		a := start(t, "a", "1", store)
		synctest.Wait()
		b := start(t, "b", "1", store)
		before := time.Now()
		if err := a.quit(); err != nil {
			t.Errorf("Run = %v, want nil: a release is not worth an error", err)
		}
		if got := a.State().ReleaseFailures; got != 1 {
			t.Errorf("%d failed releases counted, want 1", got)
		}
		<-b.leading
		if took := time.Since(before); took > ttl+time.Second {
			t.Errorf("followed after %s, want at most %s", took, ttl+time.Second)
		}
		store.Fault = nil
		_ = b.quit()
	})
}

func TestElector_AStopWhileATakeIsUnansweredLeavesNoLeaseBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &leasetest.Store{}
		store.Fault = func(op leasetest.Op, _ lease.Holder) leasetest.Fault {
			if op == leasetest.Take {
				return leasetest.Fault{Err: leasetest.ErrInjected, Applied: true}
			}
			return leasetest.Fault{}
		}
		a := start(t, "a", "1", store)
		synctest.Wait()
		if err := a.quit(); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		if got := store.Current(); got.Live() {
			t.Errorf("record is %+v, want it released", got)
		}
	})
}

func TestElector_TheErrorOfWorkThatEndsByItselfIsReturned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &leasetest.Store{}
		config := lease.Config{
			Name: "orders", Holder: lease.Holder{ID: "a", Incarnation: "1"},
			TTL: ttl, RenewDeadline: renewDeadline, Heartbeat: heartbeat,
		}
		failure := errors.New("no more work")
		err := lease.New(config, store, nil, zerolog.Nop()).Run(t.Context(),
			func(context.Context, *lease.Tenure) error { return failure })
		if !errors.Is(err, failure) {
			t.Errorf("Run = %v, want %v", err, failure)
		}
		if store.Current().Live() {
			t.Error("the lease was not released")
		}
	})
}

func TestElector_ConfigWantsALeaderToStopBeforeItsLeaseIsOver(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ttl, deadline, heartbeat time.Duration
		want                     string
	}{
		"in order":                               {15, 10, 5, ""},
		"lease not above the deadline":           {10, 10, 5, "not above the renewal deadline"},
		"deadline not above a heartbeat, jitter": {15, 5, 5, "not above the heartbeat"},
		"no heartbeat":                           {15, 10, 0, "not above 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := lease.Config{TTL: tt.ttl * time.Second, RenewDeadline: tt.deadline * time.Second, Heartbeat: tt.heartbeat * time.Second}.Check()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Check = %v, want %q", err, tt.want)
			}
		})
	}
}
