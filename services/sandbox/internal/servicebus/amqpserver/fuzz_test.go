package amqpserver_test

import (
	"io"
	"net"
	"testing"

	"changerelay/services/sandbox/internal/servicebus/amqp"
)

// FuzzConnection has peers send anything at all behind a good open and begin. The server must end every connection, and
// must serve the next one.
func FuzzConnection(f *testing.F) {
	frame := func(p amqp.Performative) []byte { return amqp.AppendFrame(nil, amqp.FrameAMQP, 0, p) }
	join := func(parts ...[]byte) []byte {
		var out []byte
		for _, p := range parts {
			out = append(out, p...)
		}
		return out
	}
	transfer := func(t amqp.Transfer, payload []byte) []byte {
		b, _ := amqp.AppendTransfer(nil, 0, &t, payload, 1<<16)
		return b
	}
	sender := frame(&amqp.Attach{Name: "out", Role: amqp.RoleSender, Target: &amqp.Target{Address: "plain"}})
	receiver := frame(&amqp.Attach{Name: "in", Handle: 1, Role: amqp.RoleReceiver, Source: &amqp.Source{Address: "plain"}, Target: &amqp.Target{}})
	credit := frame(&amqp.Flow{NextIncomingID: amqp.Some(0), IncomingWindow: 10, Handle: amqp.Some(1), LinkCredit: amqp.Some(5)})
	request := join(
		amqp.AppendProperties(nil, &amqp.Properties{MessageID: "1", ReplyTo: "answers"}),
		amqp.AppendApplicationProperties(nil, amqp.Map{{Key: "operation", Value: "com.microsoft:peek-message"}}),
		amqp.AppendBodyValue(nil, amqp.Map{{Key: "from-sequence-number", Value: int64(0)}, {Key: "message-count", Value: int32(1)}}),
	)
	f.Add(join(sender, transfer(amqp.Transfer{DeliveryID: amqp.Some(0)}, text("x")), receiver, credit,
		frame(&amqp.Disposition{Role: amqp.RoleReceiver, First: 0, Last: amqp.Some(9), State: amqp.Accepted{}})))
	f.Add(join(sender, transfer(amqp.Transfer{DeliveryID: amqp.Some(0), MessageFormat: amqp.Some(0x80013700)}, text("x"))))
	f.Add(join(frame(sessionAttach()), frame(&amqp.Detach{Handle: 1, Closed: true}), frame(&amqp.End{}), frame(&amqp.Close{})))
	f.Add(join(
		frame(&amqp.Attach{Name: "ask", Role: amqp.RoleSender, Target: &amqp.Target{Address: "plain/$management"}}),
		frame(&amqp.Attach{Name: "re", Handle: 1, Role: amqp.RoleReceiver, Source: &amqp.Source{Address: "plain/$management"}, Target: &amqp.Target{Address: "answers"}}),
		credit, transfer(amqp.Transfer{DeliveryID: amqp.Some(0)}, request)))
	ns := startNamespace(f, quiet)
	f.Fuzz(func(t *testing.T, input []byte) {
		nc, err := net.Dial("tcp", ns.addr)
		must(t, err)
		defer func() { _ = nc.Close() }()
		_, _ = nc.Write(amqp.HeaderAMQP[:])
		_, _ = nc.Write(frame(&amqp.Open{ContainerID: "fuzz", MaxFrameSize: 65_536, ChannelMax: 10}))
		_, _ = nc.Write(frame(&amqp.Begin{IncomingWindow: 100, OutgoingWindow: 100, HandleMax: 10}))
		_, _ = nc.Write(input)
		_ = nc.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, nc)
	})
}
