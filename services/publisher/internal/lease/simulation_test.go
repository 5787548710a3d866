package lease_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/lease/leasetest"
)

var (
	simSeed  = flag.Uint64("lease.seed", 1, "first seed of the simulated schedules")
	simCount = flag.Uint64("lease.schedules", 100, "how many schedules to simulate")
)

// TestSimulation_NoScheduleHasTwoLeaders runs instances through seeded schedules of failed,
// hanging, lost and late calls, of restarts, and of a server clock that runs at
// another rate. At every moment whoever may act must hold the server's lease;
// and when the faults end, somebody leads within a lease.
func TestSimulation_NoScheduleHasTwoLeaders(t *testing.T) {
	t.Parallel()
	for seed := *simSeed; seed < *simSeed+*simCount; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newSimulation(t, seed).run() })
		})
	}
}

type simulation struct {
	t         *testing.T
	random    *rand.Rand // for what the test does
	faults    *rand.Rand // for what becomes of calls, under the store's lock
	rate      float64
	store     *leasetest.Store
	faulty    atomic.Bool
	instances []*instance
	tenures   []*lease.Tenure
	started   int
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	s := &simulation{t: t, random: rand.New(rand.NewPCG(seed, 0)), faults: rand.New(rand.NewPCG(seed, 1))}
	s.faulty.Store(true)
	s.rate = 0.7 + 0.75*s.random.Float64()
	began := time.Now()
	skew := time.Duration(s.random.Int64N(int64(2*time.Hour))) - time.Hour
	s.store = &leasetest.Store{
		Clock: func() time.Time {
			return began.Add(skew + time.Duration(s.rate*float64(time.Since(began))))
		},
		Fault: func(leasetest.Op, lease.Holder) leasetest.Fault { return s.fault() },
	}
	return s
}

// fault is called under the store's lock.
func (s *simulation) fault() leasetest.Fault {
	if !s.faulty.Load() {
		return leasetest.Fault{}
	}
	switch s.faults.IntN(9) {
	case 0:
		return leasetest.Fault{Err: leasetest.ErrInjected}
	case 1:
		return leasetest.Fault{Err: leasetest.ErrInjected, Applied: true}
	case 2:
		return leasetest.Fault{Hang: true}
	case 3: // late, perhaps long after the caller has given up
		return leasetest.Fault{Delay: time.Duration(s.faults.Int64N(int64(20 * time.Second)))}
	case 4: // a majority has it late
		return leasetest.Fault{Lag: time.Duration(s.faults.Int64N(int64(8 * time.Second)))}
	default:
		return leasetest.Fault{Delay: time.Duration(s.faults.Int64N(int64(50 * time.Millisecond)))}
	}
}

func (s *simulation) run() {
	for range 3 {
		s.startOne()
	}
	for range 120 {
		s.watch(time.Duration(s.random.Int64N(int64(2 * time.Second))))
		if s.random.IntN(10) == 0 {
			s.restartOne()
		}
	}
	s.faulty.Store(false)
	synctest.Wait() // whoever has drawn a fault has begun its call
	s.store.Settle()
	// A standby sleeps by its own clock what the server says is left.
	limit := time.Duration(float64(ttl)/min(s.rate, 1)) + 3*time.Second
	for waited := time.Duration(0); !s.anyActs(); waited += 50 * time.Millisecond {
		if waited > limit {
			s.t.Fatalf("nobody leads %s after the last fault", waited)
		}
		s.watch(50 * time.Millisecond)
	}
	for i := range s.instances {
		_ = s.instances[i].quit()
	}
	s.store.Settle()
}

func (s *simulation) startOne() {
	s.started++
	s.instances = append(s.instances, start(s.t, string(rune('a'+len(s.instances))), fmt.Sprint(s.started), s.store))
	s.tenures = append(s.tenures, nil)
}

// restartOne replaces an instance by a new process with its id.
func (s *simulation) restartOne() {
	i := s.random.IntN(len(s.instances))
	old := s.instances[i]
	_ = old.quit()
	s.started++
	s.instances[i] = start(s.t, old.holder.ID, fmt.Sprint(s.started), s.store)
	s.tenures[i] = nil
}

// watch checks the invariant every few milliseconds for d.
func (s *simulation) watch(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		for i := range s.instances {
			if !s.acts(i) {
				continue
			}
			if record := s.store.Current(); !record.Holder.SameProcess(s.instances[i].holder) || !record.Live() {
				s.t.Fatalf("%v may act while the server has %+v (server clock at rate %.2f)", s.instances[i].holder, record, s.rate)
			}
		}
	}
}

func (s *simulation) acts(i int) bool {
	select {
	case s.tenures[i] = <-s.instances[i].leading:
	default:
	}
	return s.tenures[i] != nil && s.tenures[i].Err() == nil
}

func (s *simulation) anyActs() bool {
	for i := range s.instances {
		if s.acts(i) {
			return true
		}
	}
	return false
}
