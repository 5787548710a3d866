package leadership

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/rs/zerolog"

	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/checkpoint/checkpointtest"
	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/lease/leasetest"
)

var (
	firstSeed = flag.Uint64("leadership.seed", 1, "first seed of the simulated schedules")
	schedules = flag.Uint64("leadership.schedules", 10_000, "how many schedules to simulate")
)

const (
	ttl           = 15 * time.Second
	renewDeadline = 10 * time.Second
	heartbeat     = 5 * time.Second
	shards        = 4
	judged        = 5 // every how many schedules the history is judged, which takes longest
)

// TestSimulation_NoScheduleMovesTheCheckpointBackOrLeavesTheStreamAlone runs instances
// through seeded schedules of crashes, restarts, outages, pauses between check and save,
// failed, hanging, late and lost calls, and of a server clock that is off by up
// to an hour and runs at another rate. Whoever may act holds the server's lease;
// the checkpoint only rises; the histories of every fifth could be those of one
// lease and one checkpoint; and when the faults end, somebody leads within a lease.
func TestSimulation_NoScheduleMovesTheCheckpointBackOrLeavesTheStreamAlone(t *testing.T) {
	t.Parallel()
	for shard := range uint64(shards) {
		t.Run(fmt.Sprint("shard ", shard), func(t *testing.T) {
			t.Parallel()
			var decided, undecided int
			defer func() { wantDecided(t, decided, undecided) }()
			for seed := *firstSeed + shard; seed < *firstSeed+*schedules; seed += shards {
				var seen *history
				synctest.Test(t, func(t *testing.T) { seen = simulate(t, seed) })
				if !t.Failed() && seed/shards%judged == 0 {
					result, err := seen.check()
					if err != nil {
						t.Error(err)
					}
					if result == porcupine.Unknown {
						undecided++
					} else {
						decided++
					}
				}
				if t.Failed() {
					t.Fatalf("again with -leadership.seed=%d -leadership.schedules=1", seed)
				}
			}
		})
	}
}

// wantDecided wants nearly every history to be judged.
func wantDecided(t *testing.T, decided, undecided int) {
	t.Helper()
	t.Logf("%d histories judged, %d not in time", decided, undecided)
	if undecided > (decided+undecided)/50 {
		t.Errorf("%d of %d histories were not judged in time", undecided, decided+undecided)
	}
}

// simulation is one schedule.
type simulation struct {
	t           *testing.T
	seed        uint64
	random      *rand.Rand // for what the test does
	began       time.Time
	lease       *leasetest.Store
	checkpoints *checkpointtest.Store
	history     history
	rate        float64

	mu     sync.Mutex
	faults *rand.Rand           // guarded by mu
	fault  float64              // guarded by mu: how likely a call fails
	dead   map[string]bool      // guarded by mu: by incarnation
	cut    map[string]time.Time // guarded by mu: until when a process reaches nothing
}

// process is one instance, from its start to its end.
type process struct {
	*simulation
	holder  lease.Holder
	elector *lease.Elector
	random  *rand.Rand // of the led work
	stop    context.CancelFunc
	done    chan error
}

func simulate(t *testing.T, seed uint64) *history {
	t.Helper()
	s := &simulation{
		t: t, seed: seed, began: time.Now(), dead: map[string]bool{}, cut: map[string]time.Time{},
		random: rand.New(rand.NewPCG(seed, 0)), faults: rand.New(rand.NewPCG(seed, 1)),
	}
	s.rate = 0.7 + 0.75*s.random.Float64() // as far as TTL and deadline allow
	s.fault = 0.3 * s.random.Float64()
	skew := time.Duration(s.random.Int64N(int64(2*time.Hour))) - time.Hour
	s.lease = &leasetest.Store{
		Clock: func() time.Time { return s.began.Add(skew + time.Duration(s.rate*float64(time.Since(s.began)))) },
		Fault: s.leaseFault,
	}
	s.checkpoints = &checkpointtest.Store{Fault: s.checkpointFault}
	all := s.run()
	s.settle(all)
	for _, p := range all {
		p.stop()
	}
	for _, p := range all {
		if err := <-p.done; err != nil {
			t.Errorf("%v ended with %v", p.holder, err)
		}
	}
	s.lease.Settle()
	s.wantRising()
	return &s.history
}

// run lets faults happen, and returns all processes that there ever were.
func (s *simulation) run() []*process {
	var live []*process
	for i := range 3 {
		live = append(live, s.start(string(rune('a'+i)), 0))
	}
	all := slices.Clone(live)
	for n := range 6 {
		time.Sleep(time.Duration(s.random.Int64N(int64(12 * time.Second))))
		i := s.random.IntN(len(live))
		switch s.random.IntN(4) {
		case 0: // crash: nothing it asks for arrives any more
			s.mu.Lock()
			s.dead[live[i].holder.Incarnation] = true
			s.mu.Unlock()
			live[i].stop()
		case 1: // an orderly stop
			live[i].stop()
		case 2: // an outage, for this process alone
			s.mu.Lock()
			s.cut[live[i].holder.Incarnation] = time.Now().Add(time.Duration(s.random.Int64N(int64(3 * ttl))))
			s.mu.Unlock()
			continue
		default:
			continue
		}
		live[i] = s.start(live[i].holder.ID, n+1)
		all = append(all, live[i])
	}
	return all
}

// settle ends the faults, and wants a leader within a lease. It may be one that
// was asked to stop and has not finished.
func (s *simulation) settle(all []*process) {
	s.mu.Lock()
	s.fault = 0
	clear(s.cut)
	s.mu.Unlock()
	synctest.Wait() // whoever has drawn a fault has begun its call
	s.lease.Settle()
	// A standby sleeps by its own clock what the server says is left.
	limit := time.Duration(float64(ttl)/min(s.rate, 1)) + 3*time.Second
	leads := func(p *process) bool { return p.elector.State().Role == lease.Leader && !p.isDead() }
	for waited := time.Duration(0); !slices.ContainsFunc(all, leads); waited += 250 * time.Millisecond {
		if waited > limit {
			s.t.Errorf("nobody leads %s after the last fault", waited)
			return
		}
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
	}
}

func (s *simulation) start(id string, n int) *process {
	p := &process{
		simulation: s,
		holder:     lease.Holder{ID: id, Incarnation: fmt.Sprint(id, n)},
		random:     rand.New(rand.NewPCG(s.seed, uint64(n)<<8+uint64(id[0]))),
		done:       make(chan error, 1),
	}
	var ctx context.Context
	ctx, p.stop = context.WithCancel(s.t.Context())
	p.elector = lease.New(lease.Config{
		Name: "stream", Holder: p.holder, TTL: ttl, RenewDeadline: renewDeadline, Heartbeat: heartbeat,
	}, recordedLease{p.mortal(), &s.history}, s.lease, zerolog.Nop())
	go func() { p.done <- p.elector.Run(ctx, p.lead) }()
	return p
}

// lead claims and saves until its end, and now and then is paused between the
// check of its lease and the save.
func (p *process) lead(ctx context.Context, tenure *lease.Tenure) error {
	store := recordedCheckpoints{p.checkpoints, &p.history}
	var held *checkpoint.Claimed
	for {
		timer := time.NewTimer(time.Duration(p.random.Int64N(int64(4 * time.Second))))
		select {
		case <-timer.C:
		case <-tenure.Stopping():
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if p.isDead() {
			continue
		}
		if held == nil {
			held, _ = checkpoint.Claim(ctx, store, "stream", checkpoint.Claimant{Owner: p.holder.ID, Create: true}) // nil after an error: again
			continue
		}
		if tenure.Err() != nil {
			continue
		}
		p.wantHeld()
		if p.random.IntN(12) == 0 {
			time.Sleep(time.Duration(p.random.Int64N(int64(3 * ttl))))
		}
		if err := p.save(ctx, held); errors.Is(err, checkpoint.ErrSuperseded) {
			held = nil
		}
	}
}

// save saves the next token, also when the term has ended meanwhile: a process
// that was paused does not know.
func (p *process) save(ctx context.Context, held *checkpoint.Claimed) error {
	var last int
	_, _ = fmt.Sscan(string(held.Token), &last) // 0 before the first
	return held.Move(context.WithoutCancel(ctx), checkpoint.Place{Token: fmt.Appendf(nil, "%d", last+1)})
}

// wantHeld wants the server's lease to be ours at this moment.
func (p *process) wantHeld() {
	if record := p.lease.Current(); !record.Holder.SameProcess(p.holder) || !record.Live() {
		p.t.Errorf("%v may act while the server has %+v (its clock at rate %.2f)", p.holder, record, p.rate)
	}
}

// wantRising wants no save below the one before it. One that was not answered
// may be made twice.
func (s *simulation) wantRising() {
	last := 0
	for _, save := range s.checkpoints.Saves("stream") {
		var token int
		if _, err := fmt.Sscan(string(save.Token), &token); err != nil || token < last {
			s.t.Errorf("the checkpoint moved from %d to %q", last, save.Token)
		}
		last = token
	}
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead[p.holder.Incarnation]
}

// mortal is the lease store as a process reaches it while it lives.
func (p *process) mortal() lease.Store { return mortalStore{p.lease, p} }

type mortalStore struct {
	lease.Store
	process *process
}

// reach returns an error where a call does not arrive.
func (m mortalStore) reach(ctx context.Context) error {
	s := m.process.simulation
	s.mu.Lock()
	dead, until := s.dead[m.process.holder.Incarnation], s.cut[m.process.holder.Incarnation]
	s.mu.Unlock()
	if time.Now().Before(until) {
		<-ctx.Done()
		return ctx.Err()
	}
	if dead {
		return leasetest.ErrInjected
	}
	return nil
}

func (m mortalStore) Read(ctx context.Context) (lease.Record, error) {
	if err := m.reach(ctx); err != nil {
		return lease.Record{}, err
	}
	return m.Store.Read(ctx)
}

func (m mortalStore) Take(ctx context.Context, claim lease.Claim) (lease.Record, error) {
	if err := m.reach(ctx); err != nil {
		return lease.Record{}, err
	}
	return m.Store.Take(ctx, claim)
}

func (m mortalStore) Renew(ctx context.Context, holder lease.Holder, ttl time.Duration) (lease.Record, error) {
	if err := m.reach(ctx); err != nil {
		return lease.Record{}, err
	}
	return m.Store.Renew(ctx, holder, ttl)
}

func (m mortalStore) Release(ctx context.Context, holder lease.Holder) (bool, error) {
	if err := m.reach(ctx); err != nil {
		return false, err
	}
	return m.Store.Release(ctx, holder)
}

// leaseFault is called under the store's lock.
func (s *simulation) leaseFault(leasetest.Op, lease.Holder) leasetest.Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faults.Float64() >= s.fault {
		return leasetest.Fault{}
	}
	switch s.faults.IntN(4) {
	case 0:
		return leasetest.Fault{Err: leasetest.ErrInjected}
	case 1: // a lost reply
		return leasetest.Fault{Err: leasetest.ErrInjected, Applied: true}
	case 2:
		return leasetest.Fault{Hang: true}
	default: // late, perhaps long after the caller has given up
		return leasetest.Fault{Delay: time.Duration(s.faults.Int64N(int64(20 * time.Second)))}
	}
}

// checkpointFault is called under the store's lock.
func (s *simulation) checkpointFault(string) (err error, applied bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faults.Float64() >= s.fault {
		return nil, false
	}
	return checkpointtest.ErrInjected, s.faults.IntN(2) == 0
}
