package crashpoint

import (
	"context"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster/clustertest"
)

// running is a campaign whose services run, and end with the status when they are asked to stop.
func running(t *testing.T, status int) *campaign {
	t.Helper()
	c := &campaign{
		cfg: Config{Plain: true}, out: io.Discard, rng: rand.New(rand.NewPCG(1, 1)), cluster: clustertest.StandIns(t, status), witness: &witness.Witness{},
		proxies: map[string][]*proxy{},
	}
	t.Cleanup(c.closeProxies)
	for _, n := range c.services() {
		p, err := newProxy(n.Name, "127.0.0.1:1", readMongo)
		if err != nil {
			t.Fatal(err)
		}
		c.proxies[n.Name] = []*proxy{p}
		clustertest.Up(t, n)
	}
	return c
}

func failed(checks []report.Check) (names []string) {
	for _, check := range checks {
		if !check.Passed {
			names = append(names, check.Name)
		}
	}
	return names
}

func TestCampaign_AServiceThatEndsByItselfIsFound(t *testing.T) {
	t.Parallel()
	c := running(t, 0)
	gone := c.cluster.Projectors[0]
	gone.Kill()
	// No step comes by, and so nobody else is killed.
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.kill(ended, Step{upTo: 1}); err == nil {
		t.Error("a kill without a step: got no error")
	}
	if !gone.Running() {
		t.Error("a service that ended by itself was not started again")
	}
	clustertest.AwaitUp(t, gone)
	checks, err := c.stopped(t.Context())
	if got := failed(checks); err != nil || !slices.Equal(got, []string{"processes that ended by themselves"}) {
		t.Errorf("got %q failed, %v; want the process that ended by itself", got, err)
	}
}

func TestCampaign_AServiceThatStopsWithAFailureIsFound(t *testing.T) {
	t.Parallel()
	checks, err := running(t, 2).stopped(t.Context())
	if got := failed(checks); err != nil || !slices.Equal(got, []string{"services that did not stop in good order"}) {
		t.Errorf("got %q failed, %v; want the services that stopped with status 2", got, err)
	}
}
