package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
)

const (
	// copied is how many events a copy has, at least, and copyRate how many of
	// them it copies a second: slow enough to be killed on the way.
	copied   = 5000
	copyRate = "1000"
	// copyKills is how often.
	copyKills = 4
)

// A leader is killed at drawn moments of a copy, and comes back as a standby,
// while the source is written to: what it has copied and not saved is copied
// again, by the next one, and nothing is missed or turned around.
func TestCopy_PublishersKilledWhileTheyCopyLoseAndReorderNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		begin     func(*testing.T) *relay
		tolerated []string
	}{
		"a snapshot at the start":         {beginSnapshot, []string{witness.Copied}},
		"a heal after the history's loss": {beginHeal, []string{witness.Copied, witness.LedgerGaps}}, // the ledger names the heal
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed of the moments: %d", seed)
			draw := rand.New(rand.NewPCG(seed, 0))
			r := c.begin(t)
			stop := r.writing(t, rate/4)
			var term int64
			for n := range int64(copyKills) {
				share := int64(copied / (copyKills + 1))
				term = r.killCopying(t, term, n*share+draw.Int64N(share))
			}
			await(t, "the copy to end", func(ctx context.Context) (bool, string) {
				_, s, found := r.Leader(ctx)
				return found && s.Term > term && s.Copy == nil && s.State == "publishing", s.State
			})
			await(t, "the stream to follow", r.appliedMore(200))
			stop()
			r.judge(t, c.tolerated...)
		})
	}
}

// killCopying kills the next leader once its copy has come to the given number
// of documents, and starts it again. It returns the leader's term.
func (r *relay) killCopying(t *testing.T, above, least int64) int64 {
	t.Helper()
	var leader *cluster.Node
	var status cluster.PublisherStatus
	await(t, fmt.Sprintf("a copy of %d documents", least), func(ctx context.Context) (bool, string) {
		n, s, found := r.Leader(ctx)
		leader, status = n, s
		return found && s.Term > above && s.Copy != nil && s.Copy.Copied >= least, s.State
	})
	leader.Kill()
	if err := leader.Start(); err != nil {
		t.Fatal(err)
	}
	if status.Copy.Copied >= copied {
		t.Errorf("copied when it was killed: got %d, want less than all %d", status.Copy.Copied, copied)
	}
	return status.Term
}

// beginSnapshot begins a stream with a copy of what is there.
func beginSnapshot(t *testing.T) *relay {
	t.Helper()
	c := cluster.New(configure(t, func(c *cluster.Config) {
		c.PublisherEnv = map[string]string{"START_AT": "snapshot", "SNAPSHOT_RATE": copyRate}
	}))
	closeAtEnd(t, c)
	if err := c.StartServers(within(t)); err != nil {
		t.Fatal(err)
	}
	r := watched(t, c)
	r.write(t, copied)
	if err := c.StartServices(); err != nil {
		t.Fatal(err)
	}
	return r
}

// beginHeal lets the publishers miss more than the operation log holds.
func beginHeal(t *testing.T) *relay {
	t.Helper()
	const entries = 60_000 // more than the rest of the test writes
	r := start(t, func(c *cluster.Config) {
		c.SandboxArgs = cluster.SandboxAnywhere("--oplog-entries", fmt.Sprint(entries))
		c.PublisherEnv = map[string]string{"ON_HISTORY_LOST": "heal", "HEAL_FIELD": "time", "SNAPSHOT_RATE": copyRate}
	})
	r.write(t, 300)
	if err := r.witness.AwaitDrain(within(t)); err != nil {
		t.Fatal(err)
	}
	if errs := cluster.Stop(within(t), r.Publishers...); errs != nil {
		t.Fatal(errs)
	}
	r.write(t, copied)
	others := r.witness.Client.Database("elsewhere").Collection("noise")
	noise := make([]any, 1000)
	for i := range noise {
		noise[i] = bson.D{{Key: "noise", Value: i}}
	}
	for range entries / len(noise) {
		if _, err := others.InsertMany(within(t), noise); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range r.Publishers {
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
	}
	return r
}
