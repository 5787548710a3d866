package scenario

import (
	"context"
	"strings"
	"testing"

	"changerelay/services/e2e/internal/harness/cluster"
)

// The services come up before their servers do, wait, and lose nothing.
func TestOutage_ServicesWaitForTheirServers(t *testing.T) {
	t.Parallel()
	mongo, bus := freeAddress(t), freeAddress(t)
	c := cluster.New(configure(t, func(cfg *cluster.Config) {
		cfg.Backend = &cluster.Endpoints{
			MongoURI:   "mongodb://" + mongo + "/?replicaSet=rs0",
			ServiceBus: "Endpoint=sb://" + bus + ";SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;",
		}
		cfg.SandboxArgs = []string{"--mongo", mongo, "--servicebus", bus, "--management", "127.0.0.1:0", "--http", "127.0.0.1:0"}
	}))
	closeAtEnd(t, c)
	if err := c.LayOut(); err != nil {
		t.Fatal(err)
	}
	if err := c.StartServices(); err != nil {
		t.Fatal(err)
	}
	for _, p := range c.Publishers {
		await(t, p.Name+" to say what it waits for", func(ctx context.Context) (bool, string) {
			s, err := p.PublisherStatus(ctx)
			return err == nil && s.LastError != "" && !s.Leads(), s.State
		})
	}
	for _, p := range c.Projectors {
		await(t, p.Name+" to say what it waits for", func(ctx context.Context) (bool, string) {
			s, err := p.ProjectorStatus(ctx)
			return err == nil && s.LastError != "", s.State
		})
	}
	if err := c.StartSandbox(within(t)); err != nil {
		t.Fatal(err)
	}
	r := watched(t, c)
	r.awaitWork(t)
	r.write(t, 1000)
	r.judge(t)
	for _, n := range append(c.Publishers, c.Projectors...) {
		if got, want := strings.Count(n.Log(), "admin listening"), 1; got != want {
			t.Errorf("starts of %s: got %d, want %d, for it should have waited and not started anew", n.Name, got, want)
		}
	}
}

// Servers that stop answering for a while, connections and all, hold the relay
// up and make it lose nothing.
func TestOutage_FrozenServersHoldUpAndLoseNothing(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	stop := r.writing(t, rate)
	_, term := r.sendingLeader(t, 0)
	r.awaitSends(t, term, 200)
	if err := r.Sandbox.Pause(); err != nil {
		t.Fatal(err)
	}
	await(t, "the leader to notice", func(ctx context.Context) (bool, string) {
		_, s, found := r.Leader(ctx)
		return !found || s.LastError != "", s.State
	})
	if err := r.Sandbox.Resume(); err != nil {
		t.Fatal(err)
	}
	await(t, "the relay to go on", r.appliedMore(1000))
	stop()
	r.judge(t)
}

// freeAddress returns an address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := cluster.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}
