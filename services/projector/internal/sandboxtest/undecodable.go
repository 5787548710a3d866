package sandboxtest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/Azure/go-amqp"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/namespace"
)

// SendUndecodable sends a message to a topic that has a property of the type decimal128,
// which go-amqp neither writes nor reads.
func SendUndecodable(t *testing.T, e *Endpoints, topic string, m contract.Message) {
	t.Helper()
	const uuid, decimal128 = 0x98, 0x94 // codes of types of 16 bytes
	value := []byte(strings.Repeat("\x07", 16))
	encoded := encode(t, m, map[string]any{"price": amqp.UUID(value)})
	sendEncoded(t, e, topic, bytes.Replace(encoded, append([]byte{uuid}, value...), append([]byte{decimal128}, value...), 1))
}

// SendWithSections sends a message to a topic that has more sections at its end, as they are
// encoded.
func SendWithSections(t *testing.T, e *Endpoints, topic string, m contract.Message, sections []byte) {
	t.Helper()
	sendEncoded(t, e, topic, append(encode(t, m, m.Properties), sections...))
}

// encode is a message with properties of an application.
func encode(t *testing.T, m contract.Message, properties map[string]any) []byte {
	t.Helper()
	inner := &amqp.Message{
		Properties: &amqp.MessageProperties{
			MessageID: m.ID, GroupID: &m.SessionID, Subject: &m.Subject, ContentType: &m.ContentType,
		},
		ApplicationProperties: properties,
		Data:                  [][]byte{m.Body},
	}
	if m.PartitionKey != "" {
		inner.Annotations = amqp.Annotations{"x-opt-partition-key": m.PartitionKey}
	}
	encoded, err := inner.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// sendEncoded sends a message as it is encoded, as the only one of a batch.
func sendEncoded(t *testing.T, e *Endpoints, topic string, encoded []byte) {
	t.Helper()
	const batch = 0x80013700 // the format of its message
	sender, err := plain(t, e).NewSender(t.Context(), topic, nil)
	if err != nil {
		t.Fatalf("open a sender: %v", err)
	}
	if err := sender.Send(t.Context(), &amqp.Message{Format: batch, Data: [][]byte{encoded}}, nil); err != nil {
		t.Fatalf("send an encoded message: %v", err)
	}
}

// TakeUndecodable takes the first message of a session out of a subscription, which go-amqp
// cannot decode.
func TakeUndecodable(t *testing.T, e *Endpoints, topic, subscription, sessionID string) {
	t.Helper()
	link := receiver(t, e, topic, subscription, sessionID, amqp.SenderSettleModeSettled)
	if m, err := link.Receive(t.Context(), nil); err == nil {
		t.Fatalf("received %v, want a message that cannot be decoded", m)
	}
}

// DeadLetterAsItIs dead-letters the first message of a session without a reason, so that it
// keeps properties that a reason would have taken the place of.
func DeadLetterAsItIs(t *testing.T, e *Endpoints, topic, subscription, sessionID string) {
	t.Helper()
	link := receiver(t, e, topic, subscription, sessionID, amqp.SenderSettleModeUnsettled)
	m, err := link.Receive(t.Context(), nil)
	if err != nil {
		t.Fatalf("receive: %v", err)
	}
	if err := link.RejectMessage(t.Context(), m, nil); err != nil {
		t.Fatalf("dead-letter %v: %v", m.Properties.MessageID, err)
	}
	if err := link.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// receiver takes one message of a session.
func receiver(t *testing.T, e *Endpoints, topic, subscription, sessionID string, mode amqp.SenderSettleMode) *amqp.Receiver {
	t.Helper()
	const sessionFilter, code = "com.microsoft:session-filter", 0x137000000C
	link, err := plain(t, e).NewReceiver(t.Context(), topic+"/Subscriptions/"+subscription, &amqp.ReceiverOptions{
		Credit:                    1,
		RequestedSenderSettleMode: mode.Ptr(),
		Filters:                   []amqp.LinkFilter{amqp.NewLinkFilter(sessionFilter, code, sessionID)},
	})
	if err != nil {
		t.Fatalf("open a receiver: %v", err)
	}
	return link
}

// plain is a session of AMQP on a connection of its own, until the test is over.
func plain(t *testing.T, e *Endpoints) *amqp.Session {
	t.Helper()
	access, err := namespace.Read(e.ServiceBus)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := amqp.Dial(t.Context(), "amqp://"+access.Host, &amqp.ConnOptions{SASLType: amqp.SASLTypeAnonymous()})
	if err != nil {
		t.Fatalf("connect to %s: %v", access.Host, err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	lane, err := conn.NewSession(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return lane
}
