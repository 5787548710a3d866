package app_test

import (
	"strings"
	"testing"
	"time"

	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// TestWorld_ABacklogLeavesANamespaceWithCreditsInOrder sends a backlog to a
// namespace of the service's Standard tier, which allows 1,000 credits a second:
// 333 messages, as the topic has two subscriptions. How near to that it comes is
// told and not judged, since the machine may be slow.
func TestWorld_ABacklogLeavesANamespaceWithCreditsInOrder(t *testing.T) {
	t.Parallel()
	const backlog, allowed = 3000, 1000.0 / 3
	servers := testserver.Start(t)
	proxy, through := busProxy(t, servers)
	proxy.Cut()
	source := events(t, servers)
	p := run(t, configured(servers, func(c *config.Config) {
		c.ServiceBusConnection, c.Senders, c.MaxInFlight = through, 256, 10_000
	}))
	p.await(t, "the publisher to lead", func(s status.Status) bool { return s.Term > 0 })
	source.write(t, backlog, 800)
	testserver.EnterWorld(t, servers, "standard")
	proxy.Mend()
	shown := p.await(t, "the topic to have refused some", func(s status.Status) bool { return s.Throttled > 0 })
	began, before := time.Now(), shown.Sent
	shown = p.await(t, "the pace to be told", func(s status.Status) bool { return s.PacePerSecond != nil && s.State == "publishing" })
	first := shown.Throttled
	shown = p.await(t, "the backlog to be sent", sent(backlog))
	took := time.Since(began).Seconds()
	t.Logf("%d messages in %.1f s are %.2f of what is allowed; %d sends were refused at first, %d after that",
		shown.Sent-before, took, float64(shown.Sent-before)/took/allowed, first, shown.Throttled-first)
	testserver.EnterWorld(t, servers, "loopback")
	source.wantAll(t, source.drain(t, servers))
}

// TestWorld_AMajorityThatIsBehindIsWaitedFor has a majority be behind by more than a call
// for the lease usually takes, and then by more than a lease lasts.
func TestWorld_AMajorityThatIsBehindIsWaitedFor(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	source.write(t, 1, 1)
	testserver.SetWorld(t, servers, `{"mongodb":{"lag":"700ms"}}`)
	p := run(t, configured(servers, func(c *config.Config) { c.StartAt = config.StartSnapshot }))
	p.await(t, "the publisher to lead", leading)
	source.write(t, 50, 7)
	p.await(t, "what was written to be sent", sent(51))

	testserver.SetWorld(t, servers, `{"mongodb":{"lag":"1h"}}`)
	p.await(t, "the publisher to stand by, and to say why", func(s status.Status) bool {
		return s.Role == "standby" && strings.Contains(s.LastError, "a majority of the replica set has only what was written until")
	})
	testserver.SetWorld(t, servers, `{}`)
	source.write(t, 50, 7)
	p.await(t, "the rest to be sent", sent(101))
	source.wantAll(t, source.drain(t, servers))
}
