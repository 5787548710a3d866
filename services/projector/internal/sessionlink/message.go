package sessionlink

import (
	"bytes"
	"time"

	"github.com/Azure/go-amqp"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/session"
)

// Annotations that the service sets.
const (
	partitionKey   = "x-opt-partition-key"
	sequenceNumber = "x-opt-sequence-number"
	enqueuedTime   = "x-opt-enqueued-time"
)

// convert takes over what the contract and the engine need of a message. Parts
// that a foreign message lacks, or that are of another type, stay empty, and the
// contract names them. A message with a value that go-amqp does not decode, such as a
// decimal, does not come here: its link ends (session.ErrUndecodable).
func convert(m *amqp.Message) session.Message {
	converted := session.Message{
		Message: contract.Message{Properties: m.ApplicationProperties, OtherBody: session.OtherBody(m.Value, m.Sequence)},
		Handle:  m,
	}
	if p := m.Properties; p != nil {
		converted.ID, _ = p.MessageID.(string)
		converted.SessionID = value(p.GroupID)
		converted.Subject = value(p.Subject)
		converted.ContentType = value(p.ContentType)
		converted.ContentEncoding = value(p.ContentEncoding)
	}
	switch len(m.Data) {
	case 0:
	case 1:
		converted.Body = m.Data[0]
	default: // AMQP 1.0, section 3.2.6: a body may be cut into several data sections.
		converted.Body = bytes.Join(m.Data, nil)
	}
	converted.PartitionKey, _ = m.Annotations[partitionKey].(string)
	converted.SequenceNumber, _ = m.Annotations[sequenceNumber].(int64)
	converted.EnqueuedAt, _ = m.Annotations[enqueuedTime].(time.Time)
	return converted
}

// value is what p points to, or nothing.
func value(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}
