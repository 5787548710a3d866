package scenario

import (
	"context"
	"testing"
	"time"

	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
)

// rate is a load under which something is always in flight.
const rate = 800

func TestFailover_AKilledLeaderLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	stop := r.writing(t, rate)
	old, term := r.sendingLeader(t, 0)
	old.Kill()
	_, next := r.sendingLeader(t, term)
	r.awaitSends(t, next, 200)
	stop()
	r.judge(t)
}

// In a backlog the changes of hot aggregates wait for their turn while later ones
// of others are long sent: the checkpoint must not run ahead of them.
func TestFailover_ALeaderKilledInABacklogLosesNothing(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	old, term := r.leader(t, 0)
	r.write(t, 12_000) // far faster than they go out
	r.awaitSends(t, term, 1000)
	old.Kill()
	r.judge(t)
}

func TestFailover_AFrozenLeaderMovesNothingBack(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	stop := r.writing(t, rate)
	old, term := r.sendingLeader(t, 0)
	if err := old.Pause(); err != nil {
		t.Fatal(err)
	}
	frozen := time.Now()
	_, next := r.sendingLeader(t, term)
	r.awaitSends(t, next, 500)
	await(t, "three leases to pass", func(ctx context.Context) (bool, string) {
		_, s, found := r.Leader(ctx)
		return found && s.LeaseExpiresAt.After(frozen.Add(4*leaseTTL)), s.LeaseExpiresAt.String()
	})
	if err := old.Resume(); err != nil {
		t.Fatal(err)
	}
	await(t, "the thawed leader to stand by", func(ctx context.Context) (bool, string) {
		s, err := old.PublisherStatus(ctx)
		return err == nil && !s.Leads() && s.Leader != "", s.Role
	})
	r.awaitSends(t, next, 1000)
	stop()
	// What the frozen process had on the wire may still arrive: that is allowed,
	// and must change nothing.
	r.judge(t, witness.OverlappingTerms)
}

func TestFailover_APlannedHandoverDoesNotWaitForTheLease(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *cluster.Config) { c.Lease = cluster.LeaseOf(10 * time.Minute) })
	stop := r.writing(t, rate)
	old, term := r.sendingLeader(t, 0)
	if err := old.Terminate(); err != nil {
		t.Fatal(err)
	}
	if status, err := old.Wait(within(t)); status != 0 || err != nil {
		t.Errorf("exit of the leader after SIGTERM: got %d, %v, want 0", status, err)
	}
	// The lease had minutes to run; a leader within our timeout was let in.
	_, next := r.sendingLeader(t, term)
	r.awaitSends(t, next, 200)
	stop()
	r.judge(t)
}

func TestFailover_AKilledProjectorLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	stop := r.writing(t, rate)
	victim := r.Projectors[0]
	await(t, "the projector to have applied something", func(ctx context.Context) (bool, string) {
		s, err := victim.ProjectorStatus(ctx)
		return err == nil && s.Applied > 200, "too little"
	})
	victim.Kill()
	await(t, "the other projector to go on", r.appliedMore(500))
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "the projector to be at work again", func(ctx context.Context) (bool, string) {
		s, err := victim.ProjectorStatus(ctx)
		return err == nil && s.Applied > 0, "nothing applied"
	})
	stop()
	r.judge(t)
}

func TestFailover_AProjectorAskedToStopLeavesItsSessionsToTheOthers(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	stop := r.writing(t, rate)
	leaver := r.Projectors[0]
	await(t, "the projector to have applied something", func(ctx context.Context) (bool, string) {
		s, err := leaver.ProjectorStatus(ctx)
		return err == nil && s.Applied > 200, "too little"
	})
	if err := leaver.Terminate(); err != nil {
		t.Fatal(err)
	}
	if status, err := leaver.Wait(within(t)); status != 0 || err != nil {
		t.Errorf("exit of the projector after SIGTERM: got %d, %v, want 0", status, err)
	}
	stop()
	r.judge(t)
}

// sendingLeader waits for a leader of a term above the given one whose messages
// the topic has.
func (r *relay) sendingLeader(t *testing.T, above int64) (*cluster.Node, int64) {
	t.Helper()
	n, term := r.leader(t, above)
	r.awaitSends(t, term, 1)
	return n, term
}

// leader waits for a leader of a term above the given one.
func (r *relay) leader(t *testing.T, above int64) (*cluster.Node, int64) {
	t.Helper()
	n, s, err := r.AwaitLeader(within(t), above)
	if err != nil {
		t.Fatal(err)
	}
	return n, s.Term
}

// appliedMore asks whether n more events than now are in the read model.
func (r *relay) appliedMore(n int) func(context.Context) (bool, string) {
	_, before := r.witness.Ledger.Counts()
	return func(context.Context) (bool, string) {
		_, now := r.witness.Ledger.Counts()
		return now >= before+n, "too few"
	}
}
