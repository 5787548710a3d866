package sandboxtest

import (
	"bytes"
	"net/url"
	"strings"
	"testing"

	"github.com/Azure/go-amqp"

	"changerelay/pkg/contract"
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
	var err error
	var endpoint *url.URL
	for part := range strings.SplitSeq(e.ServiceBus, ";") {
		if at, found := strings.CutPrefix(part, "Endpoint="); found {
			if endpoint, err = url.Parse(at); err != nil {
				t.Fatal(err)
			}
		}
	}
	conn, err := amqp.Dial(t.Context(), "amqp://"+endpoint.Host, &amqp.ConnOptions{SASLType: amqp.SASLTypeAnonymous()})
	if err != nil {
		t.Fatalf("connect to %s: %v", endpoint.Host, err)
	}
	defer func() { _ = conn.Close() }()
	lane, err := conn.NewSession(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	sender, err := lane.NewSender(t.Context(), topic, nil)
	if err != nil {
		t.Fatalf("open a sender: %v", err)
	}
	if err := sender.Send(t.Context(), &amqp.Message{Format: batch, Data: [][]byte{encoded}}, nil); err != nil {
		t.Fatalf("send an encoded message: %v", err)
	}
}
