package amqpserver_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/amqpserver"
	"changerelay/services/sandbox/internal/servicebus/entity"
)

func TestLimits_ReadingPausesWhileTheBrokerIsBehind(t *testing.T) {
	t.Parallel()
	const limit, size, n = 10_000, 1000, 300
	ns := startNamespace(t, func(c *amqpserver.Config) { c.MaxQueuedBytes = limit })
	w := openWire(t, ns)
	w.attachSender()
	must(t, ns.broker.Delay("plain", time.Millisecond))
	for i := range uint32(n) {
		w.transfer(amqp.Transfer{DeliveryID: amqp.Some(i)}, amqp.AppendBodyValue(nil, make([]byte, size)))
	}
	most := 0
	for range n {
		await[*amqp.Disposition](w)
		most = max(most, ns.server.Stats().QueuedBytes)
	}
	if most == 0 || most > limit+2*size {
		t.Errorf("got up to %d bytes waiting for the broker, want more than none and at most %d", most, limit+2*size)
	}
}

func TestLimits_TooManyIncompleteMessagesDetachTheLink(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t, func(c *amqpserver.Config) { c.MaxQueuedBytes = 1000 })
	w := openWire(t, ns)
	for handle := range uint32(3) {
		w.send(0, &amqp.Attach{Name: string(rune('a' + handle)), Handle: handle, Role: amqp.RoleSender, Target: &amqp.Target{Address: "plain"}})
		expect[*amqp.Attach](w)
		expect[*amqp.Flow](w)
	}
	for handle := range uint32(3) {
		w.part(amqp.Transfer{Handle: handle, DeliveryID: amqp.Some(handle)}, make([]byte, 7000))
	}
	got := expect[*amqp.Detach](w)
	equal(t, "handle", got.Handle, 2)
	equal(t, "condition", got.Error.Condition, amqp.ConditionResourceLimitExceeded)
	// The others' bytes are let go of with their links.
	w.send(0, &amqp.Detach{Handle: 0, Closed: true})
	expect[*amqp.Detach](w)
	w.part(amqp.Transfer{Handle: 1}, make([]byte, 7000))
	w.transfer(amqp.Transfer{Handle: 1, Aborted: true}, nil)
	w.send(0, &amqp.End{})
	expect[*amqp.End](w)
}

func TestLimits_AnswersThatNobodyTakesDetachTheirLink(t *testing.T) {
	t.Parallel()
	w := openWire(t, startNamespace(t))
	w.send(0, &amqp.Attach{Name: "ask", Role: amqp.RoleSender, Target: &amqp.Target{Address: "$cbs"}})
	expect[*amqp.Attach](w)
	expect[*amqp.Flow](w)
	w.send(0, &amqp.Attach{Name: "answers", Handle: 1, Role: amqp.RoleReceiver, Source: &amqp.Source{Address: "$cbs"}, Target: &amqp.Target{Address: "answers"}})
	expect[*amqp.Attach](w)
	request := amqp.AppendProperties(nil, &amqp.Properties{MessageID: "1", ReplyTo: "answers"})
	request = amqp.AppendBodyValue(request, "token")
	for i := range uint32(1001) {
		w.transfer(amqp.Transfer{DeliveryID: amqp.Some(i)}, request)
	}
	equal(t, "condition", await[*amqp.Detach](w).Error.Condition, amqp.ConditionResourceLimitExceeded)
}

func TestLimits_LargeAnswersThatNobodyTakesDetachTheirLinkSooner(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t, func(c *amqpserver.Config) { c.MaxQueuedBytes = 100_000 })
	must(t, ns.broker.Send(t.Context(), "plain", []*entity.Message{{Payload: amqp.AppendBodyValue(nil, make([]byte, 30_000))}}))
	w := openWire(t, ns)
	w.send(0, &amqp.Attach{Name: "ask", Role: amqp.RoleSender, Target: &amqp.Target{Address: "plain/$management"}})
	expect[*amqp.Attach](w)
	expect[*amqp.Flow](w)
	w.send(0, &amqp.Attach{Name: "answers", Handle: 1, Role: amqp.RoleReceiver, Source: &amqp.Source{Address: "plain/$management"}, Target: &amqp.Target{Address: "answers"}})
	expect[*amqp.Attach](w)
	request := amqp.AppendProperties(nil, &amqp.Properties{MessageID: "1", ReplyTo: "answers"})
	request = amqp.AppendApplicationProperties(request, amqp.Map{{Key: "operation", Value: "com.microsoft:peek-message"}})
	request = amqp.AppendBodyValue(request, amqp.Map{{Key: "from-sequence-number", Value: int64(0)}, {Key: "message-count", Value: int32(1)}})
	for i := range uint32(5) {
		w.transfer(amqp.Transfer{DeliveryID: amqp.Some(i)}, request)
	}
	equal(t, "condition", await[*amqp.Detach](w).Error.Condition, amqp.ConditionResourceLimitExceeded)
}

// glut fills queue "plain" with 40 MB and gives two links credit for all of it without reading: while the one link's pump
// is held up by writing, nothing but the limit holds the other's.
func glut(t *testing.T, ns *namespace, w *wire) int {
	t.Helper()
	const n = 200
	body := amqp.AppendBodyValue(nil, bytes.Repeat([]byte("x"), 200_000))
	for range n {
		must(t, ns.broker.Send(t.Context(), "plain", []*entity.Message{{Payload: body}}))
	}
	for handle := range uint32(2) {
		w.send(0, &amqp.Attach{
			Name: string(rune('a' + handle)), Handle: handle, Role: amqp.RoleReceiver, SenderMode: amqp.SenderSettled,
			Source: &amqp.Source{Address: "plain"}, Target: &amqp.Target{},
		})
		expect[*amqp.Attach](w)
	}
	for handle := range uint32(2) {
		w.send(0, &amqp.Flow{NextIncomingID: amqp.Some(0), IncomingWindow: 1 << 20, Handle: amqp.Some(handle), DeliveryCount: amqp.Some(0), LinkCredit: amqp.Some(n)})
	}
	return n
}

func TestLimits_APeerThatDoesNotReadHoldsLittleMemory(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	w := openWire(t, ns)
	n := glut(t, ns, w)
	eventually(t, "output that waits", func() bool { return ns.server.Stats().OutputBytes > 0 })
	most := 0
	for got := 0; got < n; {
		most = max(most, ns.server.Stats().OutputBytes)
		if transfer := await[*amqp.Transfer](w); !transfer.More {
			got++
		}
	}
	if limit := 10 << 20; most > limit {
		t.Errorf("got up to %d bytes waiting for the peer, want at most %d", most, limit)
	}
}

func TestLimits_APeerThatDoesNotReadLosesItsConnection(t *testing.T) {
	t.Parallel()
	// The peer's own frames have to get through before its connection ends.
	ns := startNamespace(t, func(c *amqpserver.Config) { c.WriteTimeout = time.Second })
	glut(t, ns, openWire(t, ns))
	eventually(t, "the end of the connection", func() bool { return ns.server.Stats().Connections == 0 })
}

func TestLimits_TheAcceptTimeoutLeavesRoomForTheAnswer(t *testing.T) {
	t.Parallel()
	property := func(v any) amqp.Map { return amqp.Map{{Key: amqp.Symbol("com.microsoft:timeout"), Value: v}} }
	tests := map[string]struct {
		properties amqp.Map
		want       time.Duration
	}{
		"none asked for":      {nil, time.Minute},
		"of the wrong type":   {property("soon"), time.Minute},
		"a minute":            {property(uint32(60_000)), 59 * time.Second},
		"a second":            {property(uint32(1000)), 900 * time.Millisecond},
		"nothing at all":      {property(uint32(0)), 0},
		"longer than a day":   {property(uint64(1 << 50)), 24*time.Hour - time.Second},
		"a negative duration": {property(int64(-5)), time.Minute},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			equal(t, "timeout", amqpserver.AcceptTimeout(test.properties, time.Minute), test.want)
		})
	}
}

func TestLimits_AThousandIdleConnectionsAreInNobodysWay(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t, quiet)
	idle := make([]*wire, 1000)
	for i := range idle {
		idle[i] = openWire(t, ns)
	}
	equal(t, "connections", ns.server.Stats().Connections, len(idle))
	c := ns.client(t)
	must(t, ns.sender(t, c, "plain").SendMessage(t.Context(), &azservicebus.Message{}, nil))
	for _, w := range idle {
		w.send(0, &amqp.End{})
		expect[*amqp.End](w)
	}
}

func TestMemory_IncompleteMessagesAreBoundedOverAllConnections(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t, func(c *amqpserver.Config) { c.MaxTotalBytes = 10_000 })
	one, other := openWire(t, ns), openWire(t, ns)
	for _, w := range []*wire{one, other} {
		w.attachSender()
	}
	one.part(amqp.Transfer{DeliveryID: amqp.Some(0)}, make([]byte, 7000))
	one.send(0, &amqp.Flow{Echo: true})
	expect[*amqp.Flow](one)
	other.part(amqp.Transfer{DeliveryID: amqp.Some(0)}, make([]byte, 7000))
	equal(t, "condition", expect[*amqp.Detach](other).Error.Condition, amqp.ConditionResourceLimitExceeded)
	must(t, one.nc.Close())
	eventually(t, "the end of the connection", func() bool { return ns.server.Stats().Connections == 1 })
	third := openWire(t, ns)
	third.attachSender()
	third.part(amqp.Transfer{DeliveryID: amqp.Some(0)}, make([]byte, 7000))
	third.transfer(amqp.Transfer{}, nil)
	expect[*amqp.Disposition](third)
}

func TestMemory_WhatWaitsForTheBrokerIsBoundedOverAllConnections(t *testing.T) {
	t.Parallel()
	const limit, size, n, connections = 10_000, 1000, 60, 4
	ns := startNamespace(t, func(c *amqpserver.Config) { c.MaxTotalBytes = limit })
	must(t, ns.broker.Delay("plain", time.Millisecond))
	wires := make([]*wire, connections)
	for i := range wires {
		wires[i] = openWire(t, ns)
		wires[i].attachSender()
		for id := range uint32(n) {
			wires[i].transfer(amqp.Transfer{DeliveryID: amqp.Some(id)}, amqp.AppendBodyValue(nil, make([]byte, size)))
		}
	}
	most := 0
	for range n {
		for _, w := range wires {
			await[*amqp.Disposition](w)
			most = max(most, ns.server.Stats().QueuedBytes)
		}
	}
	if bound := limit + (connections+1)*2*size; most == 0 || most > bound {
		t.Errorf("got up to %d bytes waiting for the broker, want more than none and at most %d", most, bound)
	}
	equal(t, "bytes left", ns.server.Stats().QueuedBytes, 0)
}
