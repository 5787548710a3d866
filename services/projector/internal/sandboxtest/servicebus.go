package sandboxtest

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/pkg/contract"
)

// Topics is a configuration with these topics, each with the session
// subscription projector: partitioned, locks of ten seconds.
func Topics(names ...string) Config {
	type object = map[string]any
	topics := make([]object, len(names))
	for i, name := range names {
		topics[i] = object{
			"Name":       name,
			"Properties": object{"DefaultMessageTimeToLive": "PT1H", "RequiresDuplicateDetection": false, "EnablePartitioning": true},
			"Subscriptions": []object{{
				"Name":       "projector",
				"Properties": object{"LockDuration": "PT10S", "MaxDeliveryCount": 10, "RequiresSession": true},
			}},
		}
	}
	config, err := json.Marshal(object{"UserConfig": object{
		"Namespaces": []object{{"Name": "sbemulatorns", "Topics": topics}},
		"Logging":    object{"Type": "File"},
	}})
	if err != nil {
		panic(err) // plain maps and strings
	}
	return Config(config)
}

// Client connects to Service Bus, until the test's end.
func (e *Endpoints) Client(t *testing.T) *azservicebus.Client {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(e.ServiceBus, nil)
	if err != nil {
		t.Fatalf("open Service Bus: %v", err)
	}
	t.Cleanup(func() { _ = client.Close(context.WithoutCancel(t.Context())) })
	return client
}

// Send sends messages to a topic, in order.
func Send(t *testing.T, e *Endpoints, topic string, messages ...contract.Message) {
	t.Helper()
	all := make([]*azservicebus.AMQPAnnotatedMessage, len(messages))
	for i := range messages {
		all[i] = annotated(messages[i])
	}
	sendAll(t, e, topic, all...)
}

// SendBody sends a message with another body than its own to a topic.
func SendBody(t *testing.T, e *Endpoints, topic string, m contract.Message, body azservicebus.AMQPAnnotatedMessageBody) {
	t.Helper()
	message := annotated(m)
	message.Body = body
	sendAll(t, e, topic, message)
}

func sendAll(t *testing.T, e *Endpoints, topic string, messages ...*azservicebus.AMQPAnnotatedMessage) {
	t.Helper()
	sender, err := e.Client(t).NewSender(topic, nil)
	if err != nil {
		t.Fatalf("open a sender: %v", err)
	}
	defer func() { _ = sender.Close(t.Context()) }()
	for _, m := range messages {
		if err := sender.SendAMQPAnnotatedMessage(t.Context(), m, nil); err != nil {
			t.Fatalf("send %q: %v", m.Properties.MessageID, err)
		}
	}
}

// annotated is a contract message as AMQP has it.
func annotated(m contract.Message) *azservicebus.AMQPAnnotatedMessage {
	text := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	message := &azservicebus.AMQPAnnotatedMessage{
		ApplicationProperties: m.Properties,
		Body:                  azservicebus.AMQPAnnotatedMessageBody{Data: [][]byte{m.Body}},
		Properties: &azservicebus.AMQPAnnotatedMessageProperties{
			MessageID:       m.ID,
			GroupID:         text(m.SessionID),
			Subject:         text(m.Subject),
			ContentType:     text(m.ContentType),
			ContentEncoding: text(m.ContentEncoding),
		},
	}
	if m.PartitionKey != "" {
		message.MessageAnnotations = map[any]any{"x-opt-partition-key": m.PartitionKey}
	}
	return message
}
