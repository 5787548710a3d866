package leadership

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// TestDatabase_TheDatabaseAnswersAsOneLeaseAndOneCheckpoint calls a database from several
// clients at once, in any order, with leases of milliseconds. Some calls are
// never made, some lose their reply, some are given up.
func TestDatabase_TheDatabaseAnswersAsOneLeaseAndOneCheckpoint(t *testing.T) {
	t.Parallel()
	state := mongostate.New(testserver.Mongo(t), testserver.Name(t))
	const lanes, each = 4, 250
	for lane := range lanes {
		t.Run(fmt.Sprint("lane ", lane), func(t *testing.T) {
			t.Parallel()
			var decided, undecided int
			defer func() { wantDecided(t, decided, undecided) }()
			for n := range each {
				seed := *firstSeed + uint64(lane*each+n)
				var h history
				name := fmt.Sprint("stream ", seed)
				callAtRandom(t, &h, state.Lease(name), state.Checkpoints(), name, seed)
				result, err := h.check()
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if result == porcupine.Unknown {
					undecided++
				} else {
					decided++
				}
			}
		})
	}
}

func callAtRandom(t *testing.T, h *history, records lease.Store, checkpoints checkpoint.Store, stream string, seed uint64) {
	t.Helper()
	const clients, calls = 3, 7
	var group sync.WaitGroup
	for n := range clients {
		random := rand.New(rand.NewPCG(seed, uint64(n)))
		c := &caller{
			random: random, stream: stream,
			lease:       recordedLease{&lossyLease{Store: records, random: random}, h},
			checkpoints: recordedCheckpoints{&lossyCheckpoints{Store: checkpoints, random: random}, h},
			holder:      lease.Holder{ID: fmt.Sprint("client ", n), Incarnation: "1"},
		}
		group.Go(func() {
			for range calls {
				c.call(t.Context())
			}
		})
	}
	group.Wait()
}

// caller makes one client's calls.
type caller struct {
	random      *rand.Rand
	stream      string
	lease       recordedLease
	checkpoints recordedCheckpoints
	holder      lease.Holder
	term, saves int64
}

// call makes one call, whatever comes of it: what it says is recorded.
func (c *caller) call(ctx context.Context) {
	if c.random.IntN(8) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.random.Int64N(int64(2*time.Millisecond))))
		defer cancel()
	}
	ttl := time.Duration(1+c.random.IntN(15)) * time.Millisecond
	switch c.random.IntN(7) {
	case 0:
		_, _ = c.lease.Read(ctx)
	case 1, 2:
		c.holder.Tenure++
		_, _ = c.lease.Take(ctx, lease.Claim{Holder: c.holder, TTL: ttl})
	case 3:
		_, _ = c.lease.Renew(ctx, c.holder, ttl)
	case 4:
		_, _ = c.lease.Release(ctx, c.holder)
	case 5:
		if found, err := c.checkpoints.Claim(ctx, c.stream, checkpoint.Claimant{Owner: c.holder.ID, Create: true}); err == nil {
			c.term, c.saves = found.Term, 0
		}
	default:
		c.saves++
		token := []byte("\x0c\x00\x00\x00\x10n\x00\x00\x00\x00\x00\x00") // {n: …}
		token[7], token[8] = byte(c.random.IntN(256)), byte(c.random.IntN(256))
		_ = c.checkpoints.Save(ctx, c.stream, c.term, checkpoint.Progress{Number: c.saves, Place: checkpoint.Place{Token: token}})
	}
}

var errLost = errors.New("no answer")

// lossyLease loses calls and replies.
type lossyLease struct {
	lease.Store
	random *rand.Rand
}

func (l *lossyLease) Take(ctx context.Context, claim lease.Claim) (lease.Record, error) {
	return lossy(l.random, func() (lease.Record, error) { return l.Store.Take(ctx, claim) })
}

func (l *lossyLease) Renew(ctx context.Context, holder lease.Holder, ttl time.Duration) (lease.Record, error) {
	return lossy(l.random, func() (lease.Record, error) { return l.Store.Renew(ctx, holder, ttl) })
}

func (l *lossyLease) Release(ctx context.Context, holder lease.Holder) (bool, error) {
	return lossy(l.random, func() (bool, error) { return l.Store.Release(ctx, holder) })
}

// lossyCheckpoints loses calls and replies.
type lossyCheckpoints struct {
	checkpoint.Store
	random *rand.Rand
}

func (l *lossyCheckpoints) Claim(ctx context.Context, stream string, by checkpoint.Claimant) (checkpoint.Checkpoint, error) {
	return lossy(l.random, func() (checkpoint.Checkpoint, error) { return l.Store.Claim(ctx, stream, by) })
}

func (l *lossyCheckpoints) Save(ctx context.Context, stream string, term int64, progress checkpoint.Progress) error {
	_, err := lossy(l.random, func() (any, error) { return nil, l.Store.Save(ctx, stream, term, progress) })
	return err
}

func lossy[T any](random *rand.Rand, call func() (T, error)) (T, error) {
	var none T
	switch random.IntN(8) {
	case 0:
		return none, errLost
	case 1:
		if _, err := call(); err != nil {
			return none, err // it was given up, or refused: not a lost reply
		}
		return none, errLost
	default:
		return call()
	}
}
