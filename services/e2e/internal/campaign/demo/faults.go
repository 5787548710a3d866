package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/poll"
	"changerelay/services/e2e/internal/harness/pressure"
)

// Shares of the planned events after which each fault comes.
const (
	crashAt    = 0.2
	projectAt  = 0.5
	handoverAt = 0.75
)

const (
	// takeoverSlack is what a failover may take over the rest of the lease.
	takeoverSlack = time.Second
	// handoverBound is what a planned handover may take.
	handoverBound = time.Second
	// worldSlack is what either may take beyond that where the servers are not
	// beside the services: a new leader waits for some thirty round trips, and its
	// first messages are those that the topic has had and drops.
	worldSlack = 10 * time.Second
)

// failover is a passing of the lead that was brought about.
type failover struct {
	kind     string
	from, to int64 // terms
	bound    time.Duration
	signal   time.Time      // when the old leader was signalled
	rest     time.Duration  // of the lease, at the signal
	stall    pressure.Stall // of the machine, at the signal
	fault    int            // index of its fault in the report
}

// nemesis injects faults, and notes which.
type nemesis struct {
	cluster *cluster.Cluster
	witness *witness.Witness
	rng     *rand.Rand
	planned int
	slack   time.Duration // of every failover
	began   time.Time

	// disorderly says of every process that was asked to stop, and did not stop
	// in good order, how it ended. Owned by run until it returns.
	disorderly validate.Findings
	repeats    repeats // owned by run until it returns

	mu        sync.Mutex // guards what follows
	faults    []report.Fault
	failovers []failover
}

// run injects one fault after another, each when its share of the events is written
// and the relay is at work again after the one before.
func (n *nemesis) run(ctx context.Context) error {
	steps := []struct {
		share float64
		do    func(context.Context) error
	}{
		{crashAt, n.crashLeader},
		{projectAt, n.killProjector},
		{handoverAt, n.handOver},
	}
	for _, step := range steps {
		if err := n.await(ctx, step.share); err != nil {
			return err
		}
		if err := step.do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// await waits until that share of the events is written.
func (n *nemesis) await(ctx context.Context, share float64) error {
	want := int(share * float64(n.planned))
	return poll.Until(ctx, fmt.Sprintf("%d events to be written", want), func(context.Context) (bool, string) {
		written, _ := n.witness.Ledger.Counts()
		return written >= want, fmt.Sprint(written)
	})
}

// sendingLeader waits for a leader whose messages the topic has.
func (n *nemesis) sendingLeader(ctx context.Context, above int64) (*cluster.Node, int64, error) {
	leader, status, err := n.cluster.AwaitLeader(ctx, above)
	if err != nil {
		return nil, 0, err
	}
	err = poll.Until(ctx, fmt.Sprintf("%s to send in term %d", leader.Name, status.Term), func(context.Context) (bool, string) {
		return n.witness.Observer.CountOfTerm(status.Term) > 0, "nothing sent"
	})
	return leader, status.Term, err
}

// crashLeader kills the leader and waits until another one sends.
func (n *nemesis) crashLeader(ctx context.Context) error {
	old, term, err := n.sendingLeader(ctx, 0)
	if err != nil {
		return err
	}
	at := n.begin(fmt.Sprintf("SIGKILL of %s, which leads term %d", old.Name, term))
	killed, waiting := time.Now(), pressure.Now()
	old.Kill()
	// The lease is read after the kill: a renewal that was under way is in it.
	rest, err := leaseRest(ctx, n.witness.State(), n.cluster.Names().LeaseName)
	if err != nil {
		return err
	}
	rest += time.Since(killed)
	f := failover{kind: "after a crash", from: term, bound: rest + takeoverSlack + n.slack, signal: killed, rest: rest, stall: waiting, fault: at}
	if err := n.succeed(ctx, f); err != nil {
		return err
	}
	return old.Start()
}

// handOver stops the leader in good order and waits until another one sends.
func (n *nemesis) handOver(ctx context.Context) error {
	old, term, err := n.sendingLeader(ctx, 0)
	if err != nil {
		return err
	}
	at := n.begin(fmt.Sprintf("SIGTERM to %s, which leads term %d", old.Name, term))
	rest, err := leaseRest(ctx, n.witness.State(), n.cluster.Names().LeaseName)
	if err != nil {
		return err
	}
	asked, waiting := time.Now(), pressure.Now()
	for _, err := range cluster.Stop(ctx, old) {
		n.disorderly.Add("%v", err)
	}
	f := failover{kind: "planned", from: term, bound: handoverBound + n.slack, signal: asked, rest: rest, stall: waiting, fault: at}
	if err := n.succeed(ctx, f); err != nil {
		return err
	}
	return old.Start()
}

// succeed waits for the next leader's first message. The bounds are those of a
// machine that has processors to spare; on another one, the time is allowed in
// which something waited for one.
func (n *nemesis) succeed(ctx context.Context, f failover) error {
	next, term, err := n.sendingLeader(ctx, f.from)
	if err != nil {
		return err
	}
	f.to = term
	f.bound += pressure.Now().Since(f.stall, f.rest)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failovers = append(n.failovers, f)
	n.faults[f.fault].Outcome = fmt.Sprintf("%s leads term %d", next.Name, term)
	return nil
}

// killProjector kills one of the projectors that hold sessions, starts it again
// and waits until it is at work.
func (n *nemesis) killProjector(ctx context.Context) error {
	victim, held, err := n.busyProjector(ctx)
	if err != nil {
		return err
	}
	at := n.begin(fmt.Sprintf("SIGKILL of %s, which holds %d sessions", victim.Name, held))
	n.repeats.note(ctx, victim)
	killed := time.Now()
	victim.Kill()
	if err := victim.Start(); err != nil {
		return err
	}
	err = poll.Until(ctx, victim.Name+" to be at work again", func(ctx context.Context) (bool, string) {
		s, err := victim.ProjectorStatus(ctx)
		return err == nil && s.Applied > 0, "nothing applied"
	})
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults[at].Outcome = fmt.Sprintf("started again, and applied something %.2f s after the kill", time.Since(killed).Seconds())
	return nil
}

// busyProjector waits for projectors that hold sessions and picks one of them.
func (n *nemesis) busyProjector(ctx context.Context) (*cluster.Node, int64, error) {
	type busy struct {
		node *cluster.Node
		held int64
	}
	var found []busy
	err := poll.Until(ctx, "a projector that holds sessions", func(ctx context.Context) (bool, string) {
		for _, p := range n.cluster.Projectors {
			if s, err := p.ProjectorStatus(ctx); err == nil && s.Sessions > 0 {
				found = append(found, busy{p, s.Sessions})
			}
		}
		return len(found) > 0, "none"
	})
	if err != nil {
		return nil, 0, err
	}
	pick := found[n.rng.IntN(len(found))]
	return pick.node, pick.held, nil
}

// begin notes a fault and returns its index.
func (n *nemesis) begin(what string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults = append(n.faults, report.Fault{At: time.Since(n.began).Seconds(), What: what, Outcome: "under way"})
	return len(n.faults) - 1
}

// latest returns the last fault so far, if there was one.
func (n *nemesis) latest() (report.Fault, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.faults) == 0 {
		return report.Fault{}, false
	}
	return n.faults[len(n.faults)-1], true
}
