package amqpserver_test

import (
	"math"
	"slices"
	"testing"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/entity"
)

// together are performatives for one write.
func together(performatives ...amqp.Performative) []byte {
	var b []byte
	for _, p := range performatives {
		b = amqp.AppendFrame(b, amqp.FrameAMQP, 0, p)
	}
	return b
}

// A client may send what a link is to do right behind its attach, as Qpid Proton does with credit.
func TestCredit_ThatComesWithTheAttachCounts(t *testing.T) {
	t.Parallel()
	filter := amqp.Map{{Key: amqp.Symbol("com.microsoft:session-filter"), Value: nil}}
	session := "s"
	for _, c := range []struct {
		name   string
		source amqp.Source
		flow   amqp.Flow
		want   []string // frames behind the attach
	}{
		{"credit", amqp.Source{Address: "plain"}, amqp.Flow{LinkCredit: amqp.Some(1)}, []string{"transfer"}},
		{"credit for the next session", amqp.Source{Address: "sessions", Filter: filter}, amqp.Flow{LinkCredit: amqp.Some(1)}, []string{"transfer"}},
		{"a drain", amqp.Source{Address: "sessions", Filter: filter}, amqp.Flow{LinkCredit: amqp.Some(2), Drain: true}, []string{"transfer", "flow"}},
		{"an echo", amqp.Source{Address: "sessions", Filter: filter}, amqp.Flow{Echo: true}, []string{"flow"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ns := startNamespace(t)
			w := openWire(t, ns)
			c.flow.Handle, c.flow.IncomingWindow = amqp.Some(1), 100
			w.write(together(
				&amqp.Attach{Name: "in", Handle: 1, Role: amqp.RoleReceiver, Source: &c.source, Target: &amqp.Target{}},
				&c.flow,
				&amqp.Flow{IncomingWindow: 100, Echo: true},
			))
			// The session's own echo comes at once: both flows have been read by then, and nobody has been given a session yet.
			answers := []amqp.Performative{await[*amqp.Flow](w)}
			must(t, ns.broker.Send(t.Context(), c.source.Address, []*entity.Message{{SessionID: &session, Payload: text("x")}}))
			for len(answers) < 2+len(c.want) {
				p, _ := w.next()
				answers = append(answers, p)
			}
			var got []string
			for _, p := range answers {
				switch p := p.(type) {
				case *amqp.Transfer:
					got = append(got, "transfer")
				case *amqp.Flow:
					if p.Handle.Set {
						got = append(got, "flow")
					}
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// The largest number stands for credit and a window without end.
func TestCredit_MayBeAnyNumber(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	w := openWire(t, ns)
	w.attachReceiver(amqp.ReceiverFirst)
	w.send(0, &amqp.Flow{
		NextIncomingID: amqp.Some(0), IncomingWindow: math.MaxUint32, Handle: amqp.Some(1),
		DeliveryCount: amqp.Some(0), LinkCredit: amqp.Some(math.MaxUint32), Echo: true,
	})
	if got := expect[*amqp.Flow](w).LinkCredit.Value; got != math.MaxUint32 {
		t.Fatalf("got credit %d, want %d", got, uint32(math.MaxUint32))
	}
	fill(t, ns, 3)
	for range 3 {
		expect[*amqp.Transfer](w)
	}
}
