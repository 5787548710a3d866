package scenario

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"testing"

	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/load"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/payload"
	"changerelay/services/e2e/internal/harness/releases"
)

// lastRelease is the programs of the last release; where the repository's history
// does not reach back to it, the test is not run. `make upgrades` sets UPGRADES.
func lastRelease(t *testing.T) cluster.Binaries {
	t.Helper()
	if os.Getenv("UPGRADES") == "" {
		t.Skip("builds the last release: make upgrades")
	}
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	b, err := releases.Last().Build(t.Context(), root)
	if errors.Is(err, releases.ErrNotHere) {
		t.Skipf("NOT RUN: %s: %v", t.Name(), err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// upgrade is a relay whose services are replaced one by one while events are written.
type upgrade struct {
	*relay
	release cluster.Binaries
	old     map[*cluster.Node]bool // runs the last release's program
}

// startOld brings up a whole system of the last release.
func startOld(t *testing.T, edit func(*cluster.Config)) *upgrade {
	t.Helper()
	u := layOutOld(t, edit)
	u.beginAll(t, true)
	return u
}

// layOutOld is startOld, with none of the services started.
func layOutOld(t *testing.T, edit func(*cluster.Config)) *upgrade {
	t.Helper()
	release := lastRelease(t)
	c := cluster.New(configure(t, edit))
	closeAtEnd(t, c)
	if err := c.StartServers(within(t)); err != nil {
		t.Fatal(err)
	}
	u := &upgrade{relay: watched(t, c), release: release, old: map[*cluster.Node]bool{}}
	u.next = narrow(load.Generated(orders.NewGenerator(1, 200)))
	return u
}

// beginAll starts all services, and waits until they are at work.
func (u *upgrade) beginAll(t *testing.T, old bool, env ...string) {
	t.Helper()
	for _, n := range slices.Concat(u.Publishers, u.Projectors) {
		u.begin(t, n, old, env...)
	}
	u.awaitWork(t)
}

// narrow leaves of events what the releases carry as today's programs do: the first
// one had no type for integers of 64 bits.
func narrow(next func() (orders.Event, bool)) func() (orders.Event, bool) {
	return func() (orders.Event, bool) {
		e, more := next()
		if data, ok := e.Data.(orders.Data); ok {
			for name, value := range data {
				if wide, ok := value.(int64); ok {
					data[name] = int32(wide)
				}
			}
		}
		return e, more
	}
}

// begin starts a node with the program of the last release, or today's, and with more
// environment.
func (u *upgrade) begin(t *testing.T, n *cluster.Node, old bool, env ...string) {
	t.Helper()
	u.old[n] = old
	if err := n.StartAs(u.program(n, old), env...); err != nil {
		t.Fatal(err)
	}
}

// program is what a node runs of the last release, or of today.
func (u *upgrade) program(n *cluster.Node, old bool) string {
	switch {
	case !old:
		return n.Binary()
	case slices.Contains(u.Publishers, n):
		return u.release.Publisher
	}
	return u.release.Projector
}

// replace stops a node in good order, starts it with the other program, and waits
// until it has done its part: a publisher has led, a projector applied.
func (u *upgrade) replace(t *testing.T, n *cluster.Node) {
	t.Helper()
	// One that was begun a moment ago does not know signals yet.
	if err := n.AwaitUp(within(t)); err != nil {
		t.Fatal(err)
	}
	for _, err := range cluster.Stop(within(t), n) {
		t.Fatal(err)
	}
	u.begin(t, n, !u.old[n])
	if slices.Contains(u.Publishers, n) {
		u.lead(t, n)
		return
	}
	await(t, n.Name+" to apply", func(ctx context.Context) (bool, string) {
		s, err := n.ProjectorStatus(ctx)
		return err == nil && s.Applied > 100, fmt.Sprint(s, err)
	})
}

// lead restarts whoever else leads until the publisher leads, and has sent.
func (u *upgrade) lead(t *testing.T, n *cluster.Node) {
	t.Helper()
	if err := n.AwaitUp(within(t)); err != nil {
		t.Fatal(err)
	}
	leader, term := u.sendingLeader(t, 0)
	for leader != n {
		for _, err := range cluster.Stop(within(t), leader) {
			t.Fatal(err)
		}
		u.begin(t, leader, u.old[leader])
		leader, term = u.sendingLeader(t, term)
	}
	u.awaitSends(t, term, 200)
}

// Every order in which a deployment is rolled, under load: forward, back, and
// forward again.
func TestUpgrade_RolledInAnyOrderLosesNothing(t *testing.T) {
	t.Parallel()
	orders := map[string]func(*upgrade) []*cluster.Node{
		"publishers first": func(u *upgrade) []*cluster.Node { return slices.Concat(u.Publishers, u.Projectors) },
		"projectors first": func(u *upgrade) []*cluster.Node { return slices.Concat(u.Projectors, u.Publishers) },
		"one of each": func(u *upgrade) []*cluster.Node {
			return []*cluster.Node{u.Publishers[0], u.Projectors[0], u.Publishers[1], u.Projectors[1]}
		},
	}
	for name, order := range orders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := startOld(t, nil)
			stop := u.writing(t, rate/2)
			nodes := order(u)
			for _, n := range nodes {
				u.replace(t, n)
			}
			for _, n := range slices.Backward(nodes) {
				u.replace(t, n)
			}
			for _, n := range nodes {
				u.replace(t, n)
			}
			stop()
			u.judge(t)
		})
	}
}

// Once the publishers are upgraded, also projectors of the last release apply what its
// publishers could not carry.
func TestUpgrade_PublishersFirstCarryWhatTheReleaseCouldNot(t *testing.T) {
	t.Parallel()
	u := layOutOld(t, nil)
	u.next = load.Laden(1, payload.AnyName, load.Generated(orders.NewGenerator(1, 200)))
	for _, n := range u.Publishers {
		u.begin(t, n, false)
	}
	for _, n := range u.Projectors {
		u.begin(t, n, true)
	}
	u.awaitWork(t)
	stop := u.writing(t, rate/2)
	await(t, "events to be applied", u.appliedMore(1000))
	for _, n := range u.Projectors {
		u.replace(t, n)
	}
	stop()
	u.judge(t)
}

// Of a stream in two parts, each publisher leads one; they are replaced by a kill.
func TestUpgrade_PartitionsAreLedByEitherRelease(t *testing.T) {
	t.Parallel()
	u := layOutOld(t, func(c *cluster.Config) {
		c.PublisherEnv = map[string]string{"PARTITIONS": "2"}
		c.ProjectorEnv = map[string]string{"ON_GAP": "wait"}
	})
	for _, n := range slices.Concat(u.Publishers, u.Projectors) {
		u.begin(t, n, true)
	}
	u.awaitPublishing(t, 1, 1)
	stop := u.writing(t, rate/2)
	await(t, "events to be applied", u.appliedMore(500))
	for range 3 {
		for _, n := range slices.Concat(u.Publishers, u.Projectors) {
			n.Kill()
			u.begin(t, n, !u.old[n])
			if slices.Contains(u.Publishers, n) {
				await(t, n.Name+" to lead and send", func(ctx context.Context) (bool, string) {
					s, err := n.PublisherStatus(ctx)
					return err == nil && s.Publishing() > 0 && s.Sent > 100, fmt.Sprint(s.Publishing(), s.Sent, err)
				})
			}
			await(t, "events to be applied", u.appliedMore(200))
		}
	}
	stop()
	// Each partition counts its own terms.
	u.judge(t, witness.OverlappingTerms)
}

// A copy is begun by the last release, goes on in today's, in the last release again,
// and is ended by today's.
func TestUpgrade_ACopyGoesOnInEitherRelease(t *testing.T) {
	t.Parallel()
	const (
		documents = 9000
		shares    = 6 // of which the copy is moved after three
		slow      = `{"base":"loopback","service_bus":{"credits_per_second":600,"costs":{"send":1},"busy_wait":"2s"}}`
	)
	u := layOutOld(t, func(c *cluster.Config) { c.PublisherEnv = map[string]string{"START_AT": "snapshot"} })
	u.write(t, documents)
	u.ask(t, http.MethodPut, "/world", slow)
	u.beginAll(t, true)
	for share := 1; share <= 3; share++ {
		u.awaitSeen(t, documents*share/shares)
		_, status, found := u.Leader(within(t))
		if !found || status.Copy == nil {
			t.Fatalf("after %d of %d parts: got no leader that copies (%+v)", share, shares, status)
		}
		for _, n := range u.Publishers {
			n.Kill()
			u.begin(t, n, !u.old[n])
		}
		u.leader(t, status.Term)
	}
	u.judge(t, witness.Copied)
}
