package app_test

import (
	"testing"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/sandboxtest"
	"changerelay/services/projector/internal/settings"
)

// wantLagToGrow wants the lag to grow by three seconds.
func wantLagToGrow(t *testing.T, p *projector) {
	t.Helper()
	before := *p.Status().LagSeconds
	until(t, "the lag grows", func() bool {
		now := p.Status().LagSeconds
		return now != nil && *now >= before+3
	})
}

// Readers of a projector that is stopped by halts are behind by more and more.
func TestLag_GrowsWhileHaltsStopTheProjector(t *testing.T) {
	t.Parallel()
	_, database := servers.Mongo(t, nil)
	cfg := configured(t, "lag-halts", database)
	cfg.HaltLimit = 1
	p := start(t, cfg, parse(t))
	send(t, "lag-halts", event("well", 1, "Happened", `{}`))
	until(t, "an event is applied", func() bool { return p.Status().Applied == 1 && p.Status().LagSeconds != nil })
	send(t, "lag-halts", event("bad", 1, "Doubled", `{"n":"x"}`))
	until(t, "the projector stands still", func() bool {
		s := p.Status()
		return s.State == "stopped by HALT_LIMIT" && s.Sessions == 0 && s.Accepting == 0
	})
	send(t, "lag-halts", event("well", 2, "Happened", `{}`))
	wantLagToGrow(t, p)
}

// Readers are behind where the broker refuses every settlement: what is applied holds its
// session, and no other message is received.
func TestLag_GrowsWhileEverySettlementIsRefused(t *testing.T) {
	t.Parallel()
	throttling := sandboxtest.StartWith(t, sandboxtest.Topics("throttled"))
	_, database := throttling.Mongo(t, nil)
	cfg := configured(t, "throttled", database)
	cfg.ServiceBusConnectionString, cfg.MongoURI = settings.Secret(throttling.ServiceBus), settings.Secret(throttling.MongoURI)
	cfg.MaxSessions, cfg.MinAccepts = 1, 1 // it accepts nothing while it holds one
	sendTo(t, throttling, "throttled", happened("a", 1, 9)...)
	throttling.Become(t, `{"service_bus": {"credits_per_second": 1, "costs": {"settle": 100000}}}`)
	p := start(t, cfg, projection.Projections{projection.Latest{Collection: "latest"}})
	until(t, "settlements are refused", func() bool { return p.Status().SettlesThrottled > 0 && p.Status().LagSeconds != nil })
	wantLagToGrow(t, p)
}
