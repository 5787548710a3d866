package cluster

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// layout is a cluster of stand-ins; the leader's mark is in its environment.
func layout(t *testing.T, sandbox string) *Cluster {
	t.Helper()
	c := New(Config{
		Binaries:     Binaries{Sandbox: os.Args[0], Publisher: os.Args[0], Projector: os.Args[0]},
		Dir:          t.TempDir(),
		Publishers:   2,
		Projectors:   1,
		Lease:        LeaseOf(6 * time.Second),
		Names:        DefaultNames(),
		PublisherEnv: map[string]string{standIn: "service", "TERM_MARKS": "xx"},
		ProjectorEnv: map[string]string{standIn: "service"},
	})
	c.Sandbox.program.env = environment(map[string]string{standIn: sandbox})
	t.Cleanup(c.Close)
	return c
}

func TestCluster_TheServicesGetTheSandboxsAddresses(t *testing.T) {
	t.Parallel()
	c := layout(t, "sandbox")
	if err := c.StartServers(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := c.Endpoints().MongoURI, "mongodb://127.0.0.1:1/?replicaSet=rs0"; got != want {
		t.Errorf("MongoDB: got %q, want %q", got, want)
	}
	if got, want := c.Endpoints().ServiceBus, "Endpoint=sb://127.0.0.1:2;Key=it's;"; got != want {
		t.Errorf("Service Bus: got %q, want %q", got, want)
	}
	for _, want := range []string{"MONGODB_URI=mongodb://127.0.0.1:1/?replicaSet=rs0", "LEASE_TTL=6s", "LEASE_HEARTBEAT=2s", "LEASE_RENEW_DEADLINE=4s", "INSTANCE_ID=publisher-2"} {
		if env := c.Publishers[1].program.env; !slices.Contains(env, want) {
			t.Errorf("environment of publisher-2: got %v, want %s in it", env, want)
		}
	}
	if env := c.Projectors[0].program.env; !slices.Contains(env, "SERVICEBUS_SUBSCRIPTION=projector") {
		t.Errorf("environment of projector-1: got %v, want its subscription in it", env)
	}
}

func TestCluster_TheServicesGetSecretsWhereNoneAreNeeded(t *testing.T) {
	t.Parallel()
	c := layout(t, "sandbox")
	c.cfg.Canaries = true
	c.endpoints = Endpoints{MongoURI: "mongodb://127.0.0.1:1/?replicaSet=rs0", ServiceBus: "Endpoint=sb://127.0.0.1:2;SharedAccessKey=k;"}
	if err := c.LayOut(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"MONGODB_URI=mongodb://relay:canary%3Apass%2Fword%407f3a@127.0.0.1:1/?replicaSet=rs0",
		"SERVICEBUS_CONNECTION_STRING=Endpoint=sb://127.0.0.1:2;SharedAccessKey=" + canaryKey + ";",
		"AZURE_CLIENT_SECRET=" + canarySecret,
		"OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer " + canaryHeader,
	} {
		if env := c.Publishers[0].program.env; !slices.Contains(env, want) {
			t.Errorf("environment of publisher-1: got %v, want %s in it", env, want)
		}
	}
}

func TestCluster_TheLeaderIsThePublisherOfTheHighestTerm(t *testing.T) {
	t.Parallel()
	c := layout(t, "sandbox")
	if err := c.StartServers(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.StartServices(); err != nil {
		t.Fatal(err)
	}
	for _, n := range c.Publishers {
		awaitStatus(t, n)
	}
	if n, _, found := c.Leader(t.Context()); found {
		t.Fatalf("leader: got %s, want none, for nobody says so", n.Name)
	}
	second := c.Publishers[1]
	second.Kill()
	second.program.env = append(second.program.env, "ROLE=leader")
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	n, s, err := c.AwaitLeader(t.Context(), 1)
	if err != nil || n != second || s.Term != 2 {
		t.Fatalf("leader: got %v of term %d, %v, want publisher-2 of term 2", n, s.Term, err)
	}
	first := c.Publishers[0]
	first.Kill()
	first.program.env = append(first.program.env, "ROLE=leader", "TERM_MARKS=xxx")
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	if n, s, err := c.AwaitLeader(t.Context(), 2); err != nil || n != first || s.Term != 3 {
		t.Fatalf("leader: got %v of term %d, %v, want publisher-1 of term 3, though publisher-2 says that it leads too", n, s.Term, err)
	}
	first.Kill()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := c.AwaitLeader(ctx, 2); err == nil || !strings.Contains(err.Error(), "a leader of a term above 2") {
		t.Errorf("waiting for term 3: got %v, want an error that names it", err)
	}
}

func TestCluster_ASandboxThatEndsIsAnError(t *testing.T) {
	t.Parallel()
	c := layout(t, "nothing")
	err := c.StartServers(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the sandbox ended: ") {
		t.Errorf("start: got %v, want that the sandbox ended", err)
	}
}

func TestCluster_CloseEndsEveryProcess(t *testing.T) {
	t.Parallel()
	c := layout(t, "sandbox")
	if err := c.StartServers(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.StartServices(); err != nil {
		t.Fatal(err)
	}
	c.Close()
	for _, n := range append(append([]*Node{c.Sandbox}, c.Publishers...), c.Projectors...) {
		if n.Running() {
			t.Errorf("%s still runs", n.Name)
		}
	}
}

func TestCluster_OurEnvironmentDoesNotLeakIn(t *testing.T) {
	t.Setenv("LEASE_TTL", "99h")
	if env := strings.Join(environment(nil), " "); strings.Contains(env, "99h") {
		t.Errorf("environment: got %s, want nothing of ours but PATH and HOME", env)
	}
}
