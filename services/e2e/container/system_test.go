//go:build docker

package container

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/docker"
	"changerelay/services/e2e/internal/harness/load"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/payload"
	"changerelay/services/e2e/internal/harness/poll"
	"changerelay/services/e2e/internal/harness/source"
)

// waitTimeout is how long any one state is waited for: far longer than it takes, so
// that it ends only what hangs.
const waitTimeout = 3 * time.Minute

// rate is a load under which something is always in flight, in events a second.
// The emulator carries some 35 messages a second, on each subscription.
func rate() int {
	if host.Images.Real {
		return 15
	}
	return 300
}

// system is publishers and projectors on databases and a topic of their own,
// under a witness's eyes.
type system struct {
	publishers, projectors []*docker.Container

	names   cluster.Names
	witness *witness.Witness
	writer  *source.Writer
	next    func() (orders.Event, bool)
}

// start brings up two publishers and that many projectors, with a leader and
// every projector at work.
func start(t *testing.T, projectors int) *system {
	t.Helper()
	number := int(used.Add(1)) - 1
	if number >= systems {
		t.Fatalf("got %d systems, want %d at most: there is no topic for more", number+1, systems)
	}
	endpoints, err := host.Endpoints()
	if err != nil {
		t.Fatal(err)
	}
	names := docker.NamesOf(number)
	w, err := witness.Open(within(t), endpoints, names, witness.Orders)
	if err != nil {
		t.Fatal(err)
	}
	watch(t, w)
	s := &system{
		names: names, witness: w,
		writer: source.NewWriter(w.Client, names.SourceDatabase, names.SourceCollection),
		next:   load.Laden(1, payload.AnyName, load.Generated(orders.NewGenerator(1, 200))),
	}
	for range 2 {
		s.addPublisher(t)
	}
	s.addProjectors(t, projectors)
	s.leader(t, 0)
	return s
}

// watch runs the witness for as long as the test.
func watch(t *testing.T, w *witness.Witness) {
	t.Helper()
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
}

func (s *system) addPublisher(t *testing.T) {
	t.Helper()
	name := fmt.Sprintf("%s-publisher-%d", s.names.Topic, len(s.publishers)+1)
	c, err := host.Publisher(name, s.names, cluster.LeaseOf(3*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	s.publishers = append(s.publishers, c)
	removeAtEnd(t, c)
}

// addProjectors starts that many more and waits until they are up.
func (s *system) addProjectors(t *testing.T, n int) {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		name := fmt.Sprintf("%s-projector-%d", s.names.Topic, len(s.projectors)+1)
		c, err := host.Projector(name, s.names, filepath.Join(root, "services", "e2e", "orders.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		s.projectors = append(s.projectors, c)
		removeAtEnd(t, c)
	}
	for _, c := range s.projectors {
		await(t, c.Name+" to be up", func(ctx context.Context) (bool, string) {
			_, err := c.ProjectorStatus(ctx)
			return err == nil, fmt.Sprint(err)
		})
	}
}

// removeAtEnd removes a container with the test, and shows its log if that failed.
func removeAtEnd(t *testing.T, c *docker.Container) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("end of the log of %s:\n%s", c.Name, c.Log(25))
		}
		if err := host.Remove(c); err != nil {
			t.Error(err)
		}
	})
}

// leader waits for a leader of a term above the given one whose messages the
// topic has.
func (s *system) leader(t *testing.T, above int64) (*docker.Container, int64) {
	t.Helper()
	var leader *docker.Container
	var term int64
	await(t, fmt.Sprintf("a leader of a term above %d", above), func(ctx context.Context) (bool, string) {
		for _, c := range s.publishers {
			status, err := c.PublisherStatus(ctx)
			if err == nil && status.Leads() && status.Term > max(above, term) {
				leader, term = c, status.Term
			}
		}
		return leader != nil, "none"
	})
	return leader, term
}

// sendingLeader waits for one whose messages the topic has.
func (s *system) sendingLeader(t *testing.T, above int64, messages int) (*docker.Container, int64) {
	t.Helper()
	c, term := s.leader(t, above)
	await(t, fmt.Sprintf("%d messages of term %d", messages, term), func(context.Context) (bool, string) {
		n := s.witness.Observer.CountOfTerm(term)
		return n >= messages, fmt.Sprint(n)
	})
	return c, term
}

// standsBy waits until a publisher says that it follows another one.
func standsBy(t *testing.T, c *docker.Container) {
	t.Helper()
	await(t, c.Name+" to stand by", func(ctx context.Context) (bool, string) {
		s, err := c.PublisherStatus(ctx)
		return err == nil && !s.Leads() && s.Leader != "", fmt.Sprint(s.Role, err)
	})
}

// applies waits until a projector, since it was started, has applied something.
func applies(t *testing.T, c *docker.Container) {
	t.Helper()
	await(t, c.Name+" to apply", func(ctx context.Context) (bool, string) {
		s, err := c.ProjectorStatus(ctx)
		return err == nil && s.Applied > 0, fmt.Sprint(s.Applied, err)
	})
}

// progress waits until n more events than now are in the read model.
func (s *system) progress(t *testing.T, n int) {
	t.Helper()
	_, before := s.witness.Ledger.Counts()
	await(t, fmt.Sprintf("%d more events in the read model", n), func(context.Context) (bool, string) {
		_, now := s.witness.Ledger.Counts()
		return now >= before+n, fmt.Sprint(now - before)
	})
}

// writing writes at a steady rate until the returned function is called.
func (s *system) writing(t *testing.T) (stop func()) {
	t.Helper()
	enough := make(chan struct{})
	l := load.Load{To: s.writer, Rate: rate(), Next: s.next, Wrote: s.witness.Ledger.Wrote}
	g := errgroup.Group{}
	ctx := t.Context()
	g.Go(func() error { return l.Run(ctx, enough) })
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

// judge waits for the end of the backlog and fails the test for every fault that
// is not tolerated.
func (s *system) judge(t *testing.T, tolerated ...string) {
	t.Helper()
	if err := s.witness.AwaitDrain(within(t)); err != nil {
		t.Error(err)
	}
	v, err := s.witness.Judge(within(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range v.Violations {
		if f.Count > 0 && !slices.Contains(tolerated, f.Name) {
			t.Errorf("%s: got %d, want 0: %s", f.Name, f.Count, strings.Join(f.Samples, "; "))
		}
	}
	if len(v.Sends) == 0 || v.Applied == 0 || len(s.witness.Checkpoints.History()) == 0 {
		t.Errorf("got %d messages, %d events applied, %d checkpoints: want some of each, or nothing was judged",
			len(v.Sends), v.Applied, len(s.witness.Checkpoints.History()))
	}
}

// within returns a context that ends when waitTimeout does.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	t.Cleanup(cancel)
	return ctx
}

func await(t *testing.T, what string, ask func(context.Context) (bool, string)) {
	t.Helper()
	if err := poll.Until(within(t), what, ask); err != nil {
		t.Fatal(err)
	}
}

// must fails the test for an error of what the test itself does.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
