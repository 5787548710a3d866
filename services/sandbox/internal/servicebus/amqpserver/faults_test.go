package amqpserver_test

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/services/sandbox/internal/servicebus/amqp"
)

func TestFaults_ClientsRecoverFromEachFault(t *testing.T) {
	t.Parallel()
	faults := map[string]func(*namespace) int{
		"connections cut": func(ns *namespace) int { return ns.server.Cut() },
		"connections closed with an error": func(ns *namespace) int {
			return ns.server.CloseConnections(amqp.ConditionConnectionForced, "maintenance")
		},
		"links detached": func(ns *namespace) int {
			return ns.server.Detach("Plain", amqp.ConditionDetachForced, "maintenance")
		},
		"all links detached": func(ns *namespace) int {
			return ns.server.Detach("", amqp.ConditionDetachForced, "maintenance")
		},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := startNamespace(t)
			c := ns.client(t)
			sender := ns.sender(t, c, "plain")
			must(t, sender.SendMessage(t.Context(), &azservicebus.Message{}, nil))
			if n := fault(ns); n == 0 {
				t.Fatal("got nothing that the fault applied to, want at least one")
			}
			must(t, sender.SendMessage(t.Context(), &azservicebus.Message{}, nil))
			equal(t, "messages", counts(t, ns).Active, 2)
		})
	}
}

func TestFaults_ADetachByFaultLeavesOtherAddressesAlone(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	w := openWire(t, ns)
	w.attachSender()
	equal(t, "links", ns.server.Detach("sessions", amqp.ConditionDetachForced, ""), 0)
}

func TestFaults_DelayedFramesStillArrive(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	w := openWire(t, ns)
	const delay = 20 * time.Millisecond
	ns.server.Delay(delay)
	start := time.Now()
	w.send(0, &amqp.End{})
	expect[*amqp.End](w)
	if took := time.Since(start); took < delay {
		t.Errorf("got the answer after %s, want at least %s", took, delay)
	}
}

func TestFaults_StatsCountWhatIsOpen(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	w := openWire(t, ns)
	w.attachSender()
	got := ns.server.Stats()
	equal(t, "connections", got.Connections, 1)
	equal(t, "sessions", got.Sessions, 1)
	equal(t, "links", got.Links, 1)
}
