package servicebus

import (
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/pkg/contract"
)

// partitionKey is the annotation that carries a message's partition key.
// See https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-protocol-guide#message-annotations
const partitionKey = "x-opt-partition-key"

// annotated turns a message of the contract into the SDK's.
func annotated(m contract.Message) *azservicebus.AMQPAnnotatedMessage {
	properties := &azservicebus.AMQPAnnotatedMessageProperties{
		MessageID:   m.ID,
		GroupID:     &m.SessionID,
		Subject:     &m.Subject,
		ContentType: &m.ContentType,
	}
	if m.ContentEncoding != "" {
		properties.ContentEncoding = &m.ContentEncoding
	}
	return &azservicebus.AMQPAnnotatedMessage{
		Properties:            properties,
		ApplicationProperties: m.Properties,
		MessageAnnotations:    map[any]any{partitionKey: m.PartitionKey},
		Body:                  azservicebus.AMQPAnnotatedMessageBody{Data: [][]byte{m.Body}},
	}
}
