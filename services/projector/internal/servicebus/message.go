package servicebus

import (
	"bytes"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/session"
)

// convert takes over what the contract and the engine need of a message. Parts
// that a foreign message lacks stay empty, and the contract names them.
func convert(m *azservicebus.ReceivedMessage) session.Message {
	converted := session.Message{
		Message: contract.Message{
			ID:           m.MessageID,
			SessionID:    value(m.SessionID),
			PartitionKey: value(m.PartitionKey),
			Subject:      value(m.Subject),
			ContentType:  value(m.ContentType),
			Properties:   m.ApplicationProperties,
			Body:         m.Body,
		},
		SequenceNumber: value(m.SequenceNumber),
		EnqueuedAt:     value(m.EnqueuedTime),
		Handle:         m,
	}
	if raw := m.RawAMQPMessage; raw != nil {
		if raw.Properties != nil {
			converted.ContentEncoding = value(raw.Properties.ContentEncoding)
		}
		converted.OtherBody = session.OtherBody(raw.Body.Value, raw.Body.Sequence)
		// AMQP 1.0, section 3.2.6: a body may be cut into several data sections.
		if len(raw.Body.Data) > 1 {
			converted.Body = bytes.Join(raw.Body.Data, nil)
		}
	}
	return converted
}

// value is what p points to, or the zero value.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
