package servicebus

import (
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/pkg/contract"
)

// partitionKey is the annotation that carries a message's partition key.
// See https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-protocol-guide#message-annotations
const partitionKey = "x-opt-partition-key"

// annotated turns a message of the contract into the SDK's, which shares its
// memory.
func annotated(m *contract.Message) *azservicebus.AMQPAnnotatedMessage {
	var one struct { // in one piece of memory
		message    azservicebus.AMQPAnnotatedMessage
		properties azservicebus.AMQPAnnotatedMessageProperties
		body       [1][]byte
	}
	one.body[0] = m.Body
	one.properties = azservicebus.AMQPAnnotatedMessageProperties{
		MessageID: m.ID,
		GroupID:   &m.SessionID,
		Subject:   &m.Subject,
	}
	if m.ContentType != "" {
		one.properties.ContentType = &m.ContentType
	}
	if m.ContentEncoding != "" {
		one.properties.ContentEncoding = &m.ContentEncoding
	}
	one.message = azservicebus.AMQPAnnotatedMessage{
		Properties:            &one.properties,
		ApplicationProperties: m.Properties,
		MessageAnnotations:    map[any]any{partitionKey: m.PartitionKey},
		Body:                  azservicebus.AMQPAnnotatedMessageBody{Data: one.body[:]},
	}
	return &one.message
}
