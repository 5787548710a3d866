package amqpserver_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"changerelay/services/sandbox/internal/servicebus/amqp"
)

// wire is a client that speaks frames, to say what the official clients never would.
type wire struct {
	tb     testing.TB
	nc     net.Conn
	frames *amqp.FrameReader
}

// dialWire connects and reads nothing yet.
func dialWire(tb testing.TB, ns *namespace) *wire {
	tb.Helper()
	nc, err := net.Dial("tcp", ns.addr)
	must(tb, err)
	tb.Cleanup(func() { _ = nc.Close() })
	if deadline, ok := tb.(*testing.T).Deadline(); ok {
		must(tb, nc.SetDeadline(deadline.Add(-time.Second)))
	}
	return &wire{tb: tb, nc: nc, frames: amqp.NewFrameReader(bufio.NewReader(nc), 1<<20)}
}

// openWire connects and opens without SASL, and begins a session on channel 0.
func openWire(tb testing.TB, ns *namespace) *wire {
	tb.Helper()
	w := dialWire(tb, ns)
	w.header(amqp.HeaderAMQP)
	w.send(0, &amqp.Open{ContainerID: "wire", MaxFrameSize: 65_536, ChannelMax: 100})
	expect[*amqp.Open](w)
	w.send(0, &amqp.Begin{IncomingWindow: 100, OutgoingWindow: 100, HandleMax: 100})
	expect[*amqp.Begin](w)
	return w
}

// header sends a protocol header and expects the same back.
func (w *wire) header(h amqp.ProtocolHeader) {
	w.tb.Helper()
	w.write(h[:])
	var got amqp.ProtocolHeader
	_, err := io.ReadFull(w.nc, got[:])
	must(w.tb, err)
	equal(w.tb, "protocol header", got, h)
}

func (w *wire) write(b []byte) {
	w.tb.Helper()
	_, err := w.nc.Write(b)
	must(w.tb, err)
}

func (w *wire) send(channel uint16, p amqp.Performative) {
	w.tb.Helper()
	w.write(amqp.AppendFrame(nil, amqp.FrameAMQP, channel, p))
}

func (w *wire) transfer(t amqp.Transfer, payload []byte) {
	w.tb.Helper()
	b, rest := amqp.AppendTransfer(nil, 0, &t, payload, 1<<20)
	equal(w.tb, "rest", len(rest), 0)
	w.write(b)
}

// part sends a transfer of which more is to come.
func (w *wire) part(t amqp.Transfer, payload []byte) {
	w.tb.Helper()
	filler := make([]byte, 1<<16)
	b, _ := amqp.AppendTransfer(nil, 0, &t, append(payload, filler...), 60+len(payload))
	w.write(b)
}

func (w *wire) next() (amqp.Performative, []byte) {
	w.tb.Helper()
	frame, err := w.frames.Read()
	must(w.tb, err)
	if len(frame.Body) == 0 {
		return nil, nil
	}
	p, payload, err := amqp.ReadPerformative(frame.Body)
	must(w.tb, err)
	return p, append([]byte{}, payload...)
}

// expect reads one frame, which must be of the type.
func expect[P amqp.Performative](w *wire) P {
	w.tb.Helper()
	p, _ := w.next()
	got, ok := p.(P)
	if !ok {
		w.tb.Fatalf("got %#v, want %T", p, got)
	}
	return got
}

// await reads frames until one is of the type.
func await[P amqp.Performative](w *wire) P {
	w.tb.Helper()
	for {
		p, _ := w.next()
		if got, ok := p.(P); ok {
			return got
		}
	}
}

// closed checks that the server closes the connection, without waiting for the close's answer.
func (w *wire) closed() {
	w.tb.Helper()
	for {
		if _, err := w.frames.Read(); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || isReset(err) {
				return
			}
			w.tb.Fatalf("got error %v, want the end of the connection", err)
		}
	}
}

func isReset(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && !op.Timeout()
}

// attachSender attaches handle 0 to send to queue "plain".
func (w *wire) attachSender() {
	w.tb.Helper()
	w.send(0, &amqp.Attach{Name: "out", Role: amqp.RoleSender, Source: &amqp.Source{}, Target: &amqp.Target{Address: "plain"}, InitialDeliveryCount: amqp.Some(0)})
	expect[*amqp.Attach](w)
	expect[*amqp.Flow](w)
}

// attachReceiver attaches handle 1 to receive from queue "plain".
func (w *wire) attachReceiver(mode uint8) {
	w.tb.Helper()
	w.send(0, &amqp.Attach{
		Name: "in", Handle: 1, Role: amqp.RoleReceiver, SenderMode: amqp.SenderMixed, ReceiverMode: mode,
		Source: &amqp.Source{Address: "plain"}, Target: &amqp.Target{},
	})
	expect[*amqp.Attach](w)
}

func (w *wire) credit(n uint32) {
	w.tb.Helper()
	w.send(0, &amqp.Flow{
		NextIncomingID: amqp.Some(0), IncomingWindow: 100, Handle: amqp.Some(1),
		DeliveryCount: amqp.Some(0), LinkCredit: amqp.Some(n),
	})
}

// text encodes a message with a value for a body.
func text(body string) []byte { return amqp.AppendBodyValue(nil, body) }
