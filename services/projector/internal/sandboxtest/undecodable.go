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
	const uuid, decimal128, batch = 0x98, 0x94, 0x80013700 // codes of types of 16 bytes, and the format of a batch
	inner := &amqp.Message{
		Properties:            &amqp.MessageProperties{MessageID: m.ID, GroupID: &m.SessionID, Subject: &m.Subject},
		ApplicationProperties: map[string]any{"price": amqp.UUID([]byte(strings.Repeat("\x07", 16)))},
		Data:                  [][]byte{m.Body},
	}
	if m.PartitionKey != "" {
		inner.Annotations = amqp.Annotations{"x-opt-partition-key": m.PartitionKey}
	}
	encoded, err := inner.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	value := []byte(strings.Repeat("\x07", 16))
	encoded = bytes.Replace(encoded, append([]byte{uuid}, value...), append([]byte{decimal128}, value...), 1)
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
		t.Fatalf("send a message that cannot be decoded: %v", err)
	}
}
