package scenario

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/load"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/payload"
	"changerelay/services/e2e/internal/harness/poll"
	"changerelay/services/e2e/internal/harness/pressure"
	"changerelay/services/e2e/internal/harness/source"
)

// waitTimeout is how long any one state is waited for on a machine with processors to
// spare, far longer than it takes, so that it ends only what hangs; on another one it grows
// by what work waits for them, at most to three times.
const waitTimeout = 90 * time.Second

// leaseTTL is how long a lease lasts: short, so that a failover is.
const leaseTTL = 3 * time.Second

// relay is a whole system under a witness's eyes.
type relay struct {
	*cluster.Cluster
	witness *witness.Witness
	writer  *source.Writer
	next    func() (orders.Event, bool)
}

// opening is witness.Open or its like.
type opening func(context.Context, cluster.Endpoints, cluster.Names, witness.Projection) (*witness.Witness, error)

// configure returns a small cluster with a short lease, which edit may change.
func configure(t *testing.T, edit func(*cluster.Config)) cluster.Config {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	cfg := cluster.Config{
		Binaries:    binaries,
		Dir:         t.TempDir(),
		Publishers:  2,
		Projectors:  2,
		Lease:       cluster.LeaseOf(leaseTTL),
		Names:       cluster.DefaultNames(),
		Canaries:    true,
		Projections: filepath.Join(root, "services", "e2e", "orders.yaml"),
	}
	if edit != nil {
		edit(&cfg)
	}
	return cfg
}

// start brings up a whole system, with a leader and every projector at work.
func start(t *testing.T, edit func(*cluster.Config)) *relay {
	t.Helper()
	return startBy(t, edit, witness.Open)
}

// startBy is start with the way in which the witness is opened.
func startBy(t *testing.T, edit func(*cluster.Config), open opening) *relay {
	t.Helper()
	c := cluster.New(configure(t, edit))
	closeAtEnd(t, c)
	ctx := within(t)
	if err := c.StartServers(ctx); err != nil {
		t.Fatal(err)
	}
	r := watchedBy(t, c, open)
	if err := c.StartServices(); err != nil {
		t.Fatal(err)
	}
	r.awaitWork(t)
	return r
}

// closeAtEnd looks for secrets at the test's end, kills the cluster, and shows
// its logs if the test failed.
func closeAtEnd(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
		defer cancel()
		places, err := c.Leaks(ctx)
		for _, place := range places {
			t.Errorf("a secret is shown in the %s", place)
		}
		if err != nil && c.Sandbox != nil && c.Sandbox.Running() { // else the test has ended the servers
			t.Errorf("look for secrets: %v", err)
		}
		c.Close()
		if !t.Failed() {
			return
		}
		for _, n := range c.Nodes() {
			t.Logf("end of the log of %s:\n%s", n.Name, tail(n.Log(), 25))
		}
	})
}

// watched puts a witness beside a cluster whose servers are up.
func watched(t *testing.T, c *cluster.Cluster) *relay {
	t.Helper()
	return watchedBy(t, c, witness.Open)
}

// watchedBy is watched with the way in which the witness is opened.
func watchedBy(t *testing.T, c *cluster.Cluster, open opening) *relay {
	t.Helper()
	w, err := open(within(t), c.Endpoints(), c.Names(), witness.Orders)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	g := errgroup.Group{}
	g.Go(func() error { return w.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		if err := g.Wait(); err != nil {
			t.Errorf("witness: %v", err)
		}
		w.Close(context.Background())
	})
	return &relay{
		Cluster: c,
		witness: w,
		writer:  source.NewWriter(w.Client, c.Names().SourceDatabase, c.Names().SourceCollection),
		next:    load.Laden(1, payload.AnyName, load.Generated(orders.NewGenerator(1, 200))),
	}
}

// awaitWork waits for a leader and for every projector's admin port.
func (r *relay) awaitWork(t *testing.T) {
	t.Helper()
	if _, _, err := r.AwaitLeader(within(t), 0); err != nil {
		t.Fatal(err)
	}
	if err := r.AwaitProjectors(within(t)); err != nil {
		t.Fatal(err)
	}
}

// write inserts n events as fast as they go in.
func (r *relay) write(t *testing.T, n int) {
	t.Helper()
	l := load.Load{To: r.writer, Next: load.Limited(n, r.next), Wrote: r.witness.Ledger.Wrote}
	if err := l.Run(within(t), nil); err != nil {
		t.Fatal(err)
	}
}

// writing writes at a steady rate until the returned function is called.
func (r *relay) writing(t *testing.T, rate int) (stop func()) {
	t.Helper()
	enough := make(chan struct{})
	l := load.Load{To: r.writer, Rate: rate, Next: r.next, Wrote: r.witness.Ledger.Wrote}
	g := errgroup.Group{}
	g.Go(func() error { return l.Run(t.Context(), enough) })
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		close(enough)
		if err := g.Wait(); err != nil {
			t.Errorf("write: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// awaitSends waits until the topic has n messages of the term.
func (r *relay) awaitSends(t *testing.T, term int64, n int) {
	t.Helper()
	await(t, "messages of a term", func(context.Context) (bool, string) {
		return r.witness.Observer.CountOfTerm(term) >= n, "too few"
	})
}

// judge waits for the end of the backlog and fails the test for every fault that
// is not tolerated.
func (r *relay) judge(t *testing.T, tolerated ...string) witness.Verdict {
	t.Helper()
	if err := r.witness.AwaitDrain(within(t)); err != nil {
		t.Error(err)
	}
	v, err := r.witness.Judge(within(t))
	if err != nil {
		t.Fatal(err)
	}
	left, err := r.witness.AtRest(within(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range slices.Concat(v.Violations, left) {
		if f.Count > 0 && !slices.Contains(tolerated, f.Name) {
			t.Errorf("%s: got %d, want 0: %s", f.Name, f.Count, strings.Join(f.Samples, "; "))
		}
	}
	if len(v.Sends) == 0 || v.Applied == 0 || len(r.witness.Checkpoints.History()) == 0 {
		t.Errorf("got %d messages, %d events applied, %d checkpoints: want some of each, or nothing was judged",
			len(v.Sends), v.Applied, len(r.witness.Checkpoints.History()))
	}
	return v
}

// within returns a context that ends when waitTimeout does.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := pressure.WithTimeout(t.Context(), waitTimeout, 2*waitTimeout)
	t.Cleanup(cancel)
	return ctx
}

func await(t *testing.T, what string, ask func(context.Context) (bool, string)) {
	t.Helper()
	if err := poll.Until(within(t), what, ask); err != nil {
		t.Fatal(err)
	}
}

// tail returns the last lines of a text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
