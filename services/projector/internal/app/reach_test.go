package app_test

import (
	"net"
	"regexp"
	"strings"
	"testing"

	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/sandboxtest"
	"changerelay/services/projector/internal/settings"
)

// A projector that a network keeps from the broker is not ready before the broker has answered
// for the first time, or a rollout would replace those that work.
func TestReach_NotReadyBeforeTheBrokerHasAnswered(t *testing.T) {
	t.Parallel()
	bus := regexp.MustCompile(`sb://([^;/]+)`).FindStringSubmatch(servers.ServiceBus)[1]
	for _, receiver := range []string{config.ReceiverAMQP, config.ReceiverSDK} {
		t.Run(receiver, func(t *testing.T) {
			t.Parallel()
			_, database := servers.Mongo(t, nil)
			way := sandboxtest.NewProxy(t, bus)
			silent, err := net.Listen("tcp", way.Addr) // it connects, and nobody answers
			if err != nil {
				t.Fatal(err)
			}
			cfg := configured(t, "reach-"+receiver, database)
			cfg.Receiver = receiver
			cfg.ServiceBusConnectionString = settings.Secret(strings.Replace(servers.ServiceBus, bus, way.Addr, 1))
			p := start(t, cfg, parse(t))
			until(t, "it asks for sessions", func() bool { return p.Status().Accepting > 0 })
			if s := p.Status(); s.State != "waiting for Service Bus" || s.Ready || s.OutageSince == nil || s.LastError == "" {
				t.Errorf("nothing has answered: got %q, ready %t, outage since %v, last error %q; want that it waits, since when, and why", s.State, s.Ready, s.OutageSince, s.LastError)
			}
			if err := silent.Close(); err != nil {
				t.Fatal(err)
			}
			way.Open(t)
			until(t, "it is ready", func() bool { s := p.Status(); return s.Ready && s.State == "running" && s.OutageSince == nil })
		})
	}
}
