package servicebus_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/testserver"
)

// sizeExceeded is the condition that names the size of a message, whoever ends
// for it: a link, or a whole connection.
const sizeExceeded = "amqp:link:message-size-exceeded"

// TestTopic_AConnectionThatEndedForASizeMakesNoLaterMessageTooLarge has the
// service close the whole connection, as if a message had gone beyond its limit.
func TestTopic_AConnectionThatEndedForASizeMakesNoLaterMessageTooLarge(t *testing.T) {
	t.Parallel()
	for _, condition := range []string{sizeExceeded, "amqp:connection:forced", "amqp:connection:framing-error"} {
		t.Run(condition, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			topic := open(t, servers.ServiceBus)
			for n := 1; n <= 20; n += 2 {
				sendAll(t, topic, n)
				testserver.Fault(t, servers, fmt.Sprintf(`{"kind":"servicebus.close","condition":%q}`, condition))
				testserver.Eventually(t, "the connection to be replaced", func() bool {
					sent, err := topic.Send(t.Context(), []contract.Message{message(t, "order-1", n, "x"), message(t, "order-1", n+1, "x")})
					if err != nil {
						wantClass(t, err, relay.Transient)
					}
					return sent == 2
				})
			}
		})
	}
}

// TestTopic_ALinkThatDoesNotOpenMakesNoMessageTooLarge has the service close
// each connection as soon as it is opened, and give a message's size as the reason.
func TestTopic_ALinkThatDoesNotOpenMakesNoMessageTooLarge(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	proxy, connection := proxied(t, servers.ServiceBus)
	topic := open(t, connection)
	sendAll(t, topic, 1)
	proxy.Answer(closingFor(sizeExceeded))
	testserver.Fault(t, servers, fmt.Sprintf(`{"kind":"servicebus.close","condition":%q}`, sizeExceeded))
	for n := 2; n <= 10; n++ { // the first meets the old connection, the others none
		_, err := topic.Send(t.Context(), []contract.Message{message(t, "order-1", n, "x")})
		wantClass(t, err, relay.Transient)
	}
	proxy.Mend()
	sendAll(t, topic, 11)
}

// closingFor is what an AMQP server says that lets a client in, opens the
// connection, and closes it for a condition, whatever the client says.
// See AMQP 1.0, sections 2.4, 2.7 and 5.3.
func closingFor(condition string) []byte {
	const saslMechanisms, saslOutcome, opened, closed, failure = 0x40, 0x44, 0x10, 0x18, 0x1d
	const saslFrame, frame = 1, 0
	described := func(code byte, fields ...[]byte) []byte {
		body := []byte{byte(len(fields))}
		for _, field := range fields {
			body = append(body, field...)
		}
		return append([]byte{0, 0x53, code, 0xc0, byte(len(body))}, body...) // a list8
	}
	framed := func(kind byte, body []byte) []byte {
		return append(append(binary.BigEndian.AppendUint32(nil, uint32(8+len(body))), 2, kind, 0, 0), body...)
	}
	text := func(code byte, s string) []byte { return append([]byte{code, byte(len(s))}, s...) }
	const str, symbol = 0xa1, 0xa3
	said := []byte("AMQP\x03\x01\x00\x00")
	said = append(said, framed(saslFrame, described(saslMechanisms, text(symbol, "ANONYMOUS")))...)
	said = append(said, framed(saslFrame, described(saslOutcome, []byte{0x50, 0}))...)
	said = append(said, "AMQP\x00\x01\x00\x00"...)
	said = append(said, framed(frame, described(opened, text(str, "server")))...)
	return append(said, framed(frame, described(closed, described(failure, text(symbol, condition))))...)
}
