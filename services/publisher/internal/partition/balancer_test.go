package partition_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"changerelay/services/publisher/internal/partition"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Times of the simulated instances, as a publisher has them by default.
const (
	leaseTime = 15 * time.Second
	heartbeat = 5 * time.Second
	present   = 10 * time.Second
	look      = time.Second
	drain     = 300 * time.Millisecond
)

var errOutage = errors.New("no answer")

// world is the state database of a simulation: announcements and leases.
type world struct {
	mu      sync.Mutex
	members map[string]time.Time
	holders []string
	until   []time.Time
	moves   int // leases taken
	down    bool
}

func newWorld(partitions int) *world {
	return &world{members: map[string]time.Time{}, holders: make([]string, partitions), until: make([]time.Time, partitions)}
}

func (w *world) Announce(_ context.Context, member string, _ []int, during time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return errOutage
	}
	w.members[member] = time.Now().Add(during)
	return nil
}

func (w *world) Withdraw(_ context.Context, member string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.members, member)
	return nil
}

func (w *world) Snapshot(context.Context) (partition.Snapshot, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return partition.Snapshot{}, errOutage
	}
	p := partition.Snapshot{Holders: make([]string, len(w.holders))}
	for member, until := range w.members {
		if time.Now().Before(until) {
			p.Members = append(p.Members, member)
		}
	}
	for i, holder := range w.holders {
		if time.Now().Before(w.until[i]) {
			p.Holders[i] = holder
		}
	}
	return p, nil
}

// take gives the lease of a partition to holder where it is free or its own.
func (w *world) take(i int, holder string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	free := !time.Now().Before(w.until[i])
	if w.down || !free && w.holders[i] != holder {
		return false
	}
	if free {
		w.moves++
	}
	w.holders[i], w.until[i] = holder, time.Now().Add(leaseTime)
	return true
}

// taken is how many leases were taken so far.
func (w *world) taken() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.moves
}

func (w *world) release(i int, holder string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holders[i] == holder {
		w.until[i] = time.Now()
	}
}

// instance is one publisher: it campaigns for a partition as an elector does.
type instance struct {
	*world
	name string
	stop context.CancelFunc
	dead chan struct{} // closed by a crash
	done chan struct{}
}

func (w *world) join(name string) *instance {
	ctx, cancel := context.WithCancel(context.Background())
	i := &instance{world: w, name: name, stop: cancel, dead: make(chan struct{}), done: make(chan struct{})}
	balancer := partition.New(partition.Config{Member: name, Announce: heartbeat, Present: present, Look: look}, mortal{i}, i.campaign, zerolog.Nop())
	go func() {
		defer close(i.done)
		_ = balancer.Run(ctx)
	}()
	return i
}

func (i *instance) campaign(ctx context.Context, p int) error {
	holding := false
	ticker := time.NewTicker(heartbeat / 5)
	defer ticker.Stop()
	var renewed time.Time
	for {
		if !holding || time.Since(renewed) >= heartbeat {
			holding = i.take(p, i.name)
			renewed = time.Now()
		}
		select {
		case <-ticker.C:
		case <-i.dead:
			return nil
		case <-ctx.Done():
			if holding {
				pass(drain)
				i.release(p, i.name)
			}
			return nil
		}
	}
}

// crash ends the instance without a word to anybody.
func (i *instance) crash() {
	close(i.dead)
	i.stop()
	<-i.done
}

func (i *instance) quit() {
	i.stop()
	<-i.done
}

// mortal is the world as an instance sees it that may die.
type mortal struct{ *instance }

func (m mortal) Withdraw(ctx context.Context, member string) error {
	select {
	case <-m.dead:
		return errOutage
	default:
		return m.world.Withdraw(ctx, member)
	}
}

// held is how many partitions each instance holds at this moment; free ones
// under the empty name.
func (w *world) held() map[string]int {
	snapshot, _ := w.Snapshot(context.Background())
	counts := map[string]int{}
	for _, holder := range snapshot.Holders {
		counts[holder]++
	}
	return counts
}

// pass lets time go by in a bubble.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a synctest bubble, where sleeping is exact
}

// wantEven wants the partitions to be shared out evenly among the instances.
func (w *world) wantEven(t *testing.T, instances []*instance) {
	t.Helper()
	counts := w.held()
	for _, i := range instances {
		n := counts[i.name]
		if n < len(w.holders)/len(instances) || n > (len(w.holders)+len(instances)-1)/len(instances) {
			t.Fatalf("held are %v, want %d shared evenly among %d", counts, len(w.holders), len(instances))
		}
	}
	if counts[""] > 0 {
		t.Fatalf("held are %v, want no partition free", counts)
	}
}

func TestBalancer_InstancesThatComeAndGoShareEvenlyAndThenStayPut(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			t.Logf("seed %d", seed)
			w := newWorld(1 + random.IntN(12))
			names := []string{"a", "b", "c", "d", "e", "f"}
			var there []*instance
			for range 8 {
				switch n := len(there); {
				case n == 0 || n < len(names) && random.IntN(2) == 0:
					name := names[slices.IndexFunc(names, func(name string) bool {
						return !slices.ContainsFunc(there, func(i *instance) bool { return i.name == name })
					})]
					there = append(there, w.join(name))
				case random.IntN(2) == 0:
					victim := random.IntN(n)
					there[victim].crash()
					there = slices.Delete(there, victim, victim+1)
				default:
					victim := random.IntN(n)
					there[victim].quit()
					there = slices.Delete(there, victim, victim+1)
				}
				if random.IntN(3) > 0 {
					pass(time.Duration(random.Int64N(int64(20 * time.Second)))) // not settled: the next comes on top
					continue
				}
				if len(there) == 0 {
					continue
				}
				pass(time.Minute)
				w.wantEven(t, there)
				before := w.taken()
				pass(10 * time.Minute)
				w.wantEven(t, there)
				if w.taken() != before {
					t.Fatalf("%d partitions moved while nobody came or went", w.taken()-before)
				}
			}
			for _, i := range there {
				i.quit()
			}
		})
	}
}

func TestBalancer_ADeadInstanceIsFollowedWithinItsLeaseAndALook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(4)
		a, b := w.join("a"), w.join("b")
		pass(time.Minute)
		w.wantEven(t, []*instance{a, b})
		a.crash()
		pass(leaseTime + look + heartbeat/5)
		w.wantEven(t, []*instance{b})
		b.quit()
	})
}

func TestBalancer_AStoppedInstanceIsFollowedAfterItsDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(4)
		a, b := w.join("a"), w.join("b")
		pass(time.Minute)
		a.quit()
		pass(look + heartbeat/5)
		w.wantEven(t, []*instance{b})
		b.quit()
	})
}

func TestBalancer_ANewInstanceTakesOnlyWhatIsItsShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(8)
		there := []*instance{w.join("m"), w.join("n"), w.join("o")}
		pass(time.Minute)
		before := w.taken()
		there = append(there, w.join("a"))
		pass(time.Minute)
		w.wantEven(t, there)
		if moved := w.moves - before; moved != 2 {
			t.Errorf("%d partitions moved for a fourth instance of 8 partitions, want 2", moved)
		}
		for _, i := range there {
			i.quit()
		}
	})
}

func TestBalancer_AnOutageOfTheStateMovesNothingByItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(4)
		there := []*instance{w.join("a"), w.join("b")}
		pass(time.Minute)
		before := w.taken()
		w.setDown(true)
		pass(8 * time.Second)
		w.setDown(false)
		pass(time.Minute)
		w.wantEven(t, there)
		if w.taken() != before {
			t.Errorf("%d partitions moved over an outage that is shorter than a lease", w.taken()-before)
		}
		for _, i := range there {
			i.quit()
		}
	})
}

func (w *world) setDown(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
}
