package amqpserver_test

import (
	"testing"

	"changerelay/services/sandbox/internal/servicebus/amqp"
)

// attachRequests attaches handle 10 to send to a node, and handle 11 to receive from it.
func (w *wire) attachRequests(channel uint16, node, replyTo string) {
	w.tb.Helper()
	w.send(channel, &amqp.Attach{
		Name: "ask", Handle: 10, Role: amqp.RoleSender, Source: &amqp.Source{Address: node}, Target: &amqp.Target{Address: node},
		InitialDeliveryCount: amqp.Some(0),
	})
	expect[*amqp.Attach](w)
	expect[*amqp.Flow](w)
	w.attachAnswers(channel, node, replyTo)
}

func (w *wire) attachAnswers(channel uint16, node, replyTo string) {
	w.tb.Helper()
	w.send(channel, &amqp.Attach{
		Name: "answers", Handle: 11, Role: amqp.RoleReceiver, Source: &amqp.Source{Address: node}, Target: &amqp.Target{Address: replyTo},
	})
	expect[*amqp.Attach](w)
	w.send(channel, &amqp.Flow{
		NextIncomingID: amqp.Some(0), IncomingWindow: 100, Handle: amqp.Some(11), DeliveryCount: amqp.Some(0), LinkCredit: amqp.Some(10),
	})
}

// ask sends a request over handle 10 of channel 0.
func (w *wire) ask(operation, replyTo string) {
	w.tb.Helper()
	request := amqp.AppendProperties(nil, &amqp.Properties{MessageID: "7", ReplyTo: replyTo})
	request = amqp.AppendApplicationProperties(request, amqp.Map{
		{Key: "operation", Value: operation}, {Key: "name", Value: "sb://host/plain"},
	})
	w.transfer(amqp.Transfer{Handle: 10, DeliveryID: amqp.Some(0)}, amqp.AppendBodyValue(request, amqp.Map{
		{Key: "from-sequence-number", Value: int64(0)}, {Key: "message-count", Value: int32(1)},
	}))
}

// answered expects the disposition of a request before its answer, and returns the answer's channel.
func (w *wire) answered() uint16 {
	w.tb.Helper()
	disposition := expect[*amqp.Disposition](w)
	equal(w.tb, "state", disposition.State, amqp.State(amqp.Accepted{}))
	frame, err := w.frames.Read()
	must(w.tb, err)
	p, payload, err := amqp.ReadPerformative(frame.Body)
	must(w.tb, err)
	if _, ok := p.(*amqp.Transfer); !ok {
		w.tb.Fatalf("got %#v, want a transfer", p)
	}
	m, err := amqp.ReadMessage(payload)
	must(w.tb, err)
	equal(w.tb, "correlation id", m.Properties.CorrelationID, any("7"))
	return frame.Channel
}

func TestReply_FollowsTheDispositionAndNeedsNoReplyTo(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	for node, operation := range map[string]string{"$cbs": "put-token", "Plain/$Management": "com.microsoft:peek-message"} {
		for name, replyTo := range map[string]string{"without reply-to": "", "with reply-to": "here"} {
			t.Run(node+" "+name, func(t *testing.T) {
				t.Parallel()
				w := openWire(t, ns)
				w.attachRequests(0, node, "here")
				w.ask(operation, replyTo)
				w.answered()
			})
		}
	}
}

func TestReply_ComesOverTheLinkOfTheRequestsSession(t *testing.T) {
	t.Parallel()
	w := openWire(t, startNamespace(t))
	w.attachRequests(0, "plain/$management", "")
	w.send(1, &amqp.Begin{IncomingWindow: 100, OutgoingWindow: 100, HandleMax: 100})
	expect[*amqp.Begin](w)
	w.attachAnswers(1, "plain/$management", "")
	w.ask("com.microsoft:peek-message", "")
	equal(t, "channel", w.answered(), 0)
}

func TestReply_ComesOverAnotherSessionWhereItsOwnHasNoLink(t *testing.T) {
	t.Parallel()
	w := openWire(t, startNamespace(t))
	w.attachRequests(0, "plain/$management", "")
	w.send(1, &amqp.Begin{IncomingWindow: 100, OutgoingWindow: 100, HandleMax: 100})
	expect[*amqp.Begin](w)
	w.attachAnswers(1, "plain/$management", "")
	w.send(0, &amqp.Detach{Handle: 11, Closed: true})
	expect[*amqp.Detach](w)
	w.ask("com.microsoft:peek-message", "")
	equal(t, "channel", w.answered(), 1)
}

func TestReply_ThatNobodyWouldGetRefusesTheRequest(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	for node, operation := range map[string]string{"$cbs": "put-token", "plain/$management": "com.microsoft:peek-message"} {
		t.Run(node, func(t *testing.T) {
			t.Parallel()
			w := openWire(t, ns)
			w.attachRequests(0, node, "here")
			w.ask(operation, "elsewhere")
			rejected, ok := expect[*amqp.Disposition](w).State.(amqp.Rejected)
			if !ok || rejected.Error == nil || rejected.Error.Condition != amqp.ConditionNotAllowed {
				t.Errorf("got state %v, want a rejection with %s", rejected, amqp.ConditionNotAllowed)
			}
		})
	}
}

// A client may lay the answer's properties over its own, and fails where there are none.
func TestAttach_IsAnsweredWithTheClientsProperties(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	for name, attach := range map[string]amqp.Attach{
		"to send":    {Role: amqp.RoleSender, Source: &amqp.Source{}, Target: &amqp.Target{Address: "plain"}},
		"to receive": {Role: amqp.RoleReceiver, Source: &amqp.Source{Address: "plain"}, Target: &amqp.Target{}},
		"to ask":     {Role: amqp.RoleReceiver, Source: &amqp.Source{Address: "plain/$management"}, Target: &amqp.Target{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openWire(t, ns)
			attach.Name, attach.Properties = "link", amqp.Map{{Key: amqp.Symbol("name"), Value: "value"}}
			w.send(0, &attach)
			equal(t, "property", expect[*amqp.Attach](w).Properties.Get("name"), any("value"))
		})
	}
}
