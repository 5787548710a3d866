package amqpserver_test

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/amqpserver"
)

// hour is longer than any test: what waits for it shows that it is waited for.
func hour() time.Duration { return time.Hour }

func TestPace_AnswersWaitSideBySideAndComeBeforeTheDetach(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	ns.server.SetPace(amqpserver.Pace{Send: hour, Settle: hour})
	w := openWire(t, ns)
	w.attachSender()
	for i := range uint32(3) {
		w.transfer(amqp.Transfer{DeliveryID: amqp.Some(i), DeliveryTag: []byte{byte(i)}}, text("hello"))
	}
	w.attachReceiver(amqp.ReceiverSecond)
	w.credit(3)
	for i := range uint32(3) {
		equal(t, "delivery", expect[*amqp.Transfer](w).DeliveryID.Value, i) // the messages are there, and no answer is
		w.send(0, &amqp.Disposition{Role: amqp.RoleReceiver, First: i, State: amqp.Accepted{}})
	}
	w.send(0, &amqp.Detach{Handle: 0, Closed: true})
	for i := range uint32(3) {
		equal(t, "sent", expect[*amqp.Disposition](w).First, i)
	}
	expect[*amqp.Detach](w)
	w.send(0, &amqp.Detach{Handle: 1, Closed: true})
	for range 3 { // the last to be carried out are answered when they are, as the link is closing
		equal(t, "role", expect[*amqp.Disposition](w).Role, amqp.RoleSender)
	}
	expect[*amqp.Detach](w)
}

func TestPace_AConnectionThatEndsWaitsForNoAnswer(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	ns.server.SetPace(amqpserver.Pace{Send: hour})
	w := openWire(t, ns)
	w.attachSender()
	w.transfer(amqp.Transfer{DeliveryID: amqp.Some(0), DeliveryTag: []byte{1}}, text("hello"))
	w.attachReceiver(amqp.ReceiverSecond)
	w.credit(1)
	expect[*amqp.Transfer](w)
	must(t, w.nc.Close())
	eventually(t, "the end of the connection", func() bool { return ns.server.Stats().Connections == 0 })
}

func TestPace_BoundsConnectionsAndLinks(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	ns.server.SetPace(amqpserver.Pace{MaxConnections: 1, MaxLinks: 1})
	w := openWire(t, ns)
	dialWire(t, ns).closed()
	w.send(0, &amqp.Attach{Name: "x", Handle: 1, Role: amqp.RoleSender, Target: &amqp.Target{Address: "plain"}})
	equal(t, "condition", expect[*amqp.End](w).Error.Condition, amqp.ConditionNotAllowed)
}

func TestPace_BoundsTheWaitForASessionAndIdleLinks(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	ns.server.SetPace(amqpserver.Pace{AcceptTimeout: time.Millisecond, LinkIdleTimeout: time.Minute})
	w := openWire(t, ns)
	w.send(0, &amqp.Attach{Name: "next", Handle: 5, Role: amqp.RoleReceiver, Source: &amqp.Source{
		Address: "sessions", Filter: amqp.Map{{Key: amqp.Symbol("com.microsoft:session-filter"), Value: nil}},
	}})
	expect[*amqp.Attach](w)
	equal(t, "condition", expect[*amqp.Detach](w).Error.Condition, "com.microsoft:timeout")
	w.attachSender()
	ns.server.SweepAt(time.Now().Add(90 * time.Second))
	equal(t, "condition", expect[*amqp.Detach](w).Error.Condition, amqp.ConditionDetachForced)
}

func TestPace_TheOfficialSDKGoesOnAtAnyPace(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	soon := func() time.Duration { return 5 * time.Millisecond }
	ns.server.SetPace(amqpserver.Pace{Send: soon, Settle: soon, Accept: soon})
	c := ns.client(t)
	sender := ns.sender(t, c, "sessions")
	for range 5 {
		must(t, sender.SendMessage(t.Context(), &azservicebus.Message{SessionID: new("a")}, nil))
	}
	r, err := c.AcceptNextSessionForQueue(t.Context(), "sessions", nil)
	must(t, err)
	for left := 5; left > 0; {
		got, err := r.ReceiveMessages(t.Context(), left, nil)
		must(t, err)
		for _, m := range got {
			must(t, r.CompleteMessage(t.Context(), m, nil))
		}
		left -= len(got)
	}
	must(t, r.Close(t.Context()))
}
