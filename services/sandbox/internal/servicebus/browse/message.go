package browse

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/amqpserver"
	"changerelay/services/sandbox/internal/servicebus/entity"
	"changerelay/services/sandbox/internal/statuspage"
)

var states = map[entity.State]string{
	entity.StateActive: "active", entity.StateDeferred: "deferred", entity.StateScheduled: "scheduled",
}

func messageOf(d *entity.Delivery) (statuspage.Message, error) {
	read, err := amqpserver.Received(d)
	if err != nil {
		return statuspage.Message{}, fmt.Errorf("read message %d: %w", d.SequenceNumber, err)
	}
	m := statuspage.Message{
		SequenceNumber: d.SequenceNumber, EnqueuedAt: d.EnqueuedTime, ExpiresAt: d.ExpiresAt, State: states[d.State],
		DeliveryCount: d.DeliveryCount, LockedUntil: d.LockedUntil,
		MessageID: text(read.Properties.MessageID), SessionID: d.SessionID, PartitionKey: d.PartitionKey,
		Subject: d.Subject, To: d.To, ReplyTo: d.ReplyTo, CorrelationID: d.CorrelationID,
		ContentType: d.ContentType, ContentEncoding: read.Properties.ContentEncoding,
		DeadLetterSource: d.DeadLetterSource, DeadLetterReason: d.DeadLetterReason, DeadLetterDescription: d.DeadLetterDescription,
		Properties: map[string]statuspage.Property{}, Body: bodyOf(read),
	}
	for _, p := range read.ApplicationProperties {
		key, _ := amqp.AsString(p.Key)
		m.Properties[key] = propertyOf(p.Value)
	}
	return m, nil
}

// bodyOf is the data of a message, or its value as text.
func bodyOf(m *amqp.Message) []byte {
	if data, err := m.Data(); err == nil {
		return slices.Concat(data...)
	}
	value, err := m.Value()
	if err != nil {
		return m.Body // a sequence stays as it is encoded
	}
	if data, binary := value.([]byte); binary {
		return data
	}
	return []byte(text(value))
}

func propertyOf(value any) statuspage.Property {
	kind := fmt.Sprintf("%T", value)
	switch value.(type) {
	case nil:
		kind = "null"
	case amqp.Symbol:
		kind = "symbol"
	case amqp.UUID:
		kind = "uuid"
	case []byte:
		kind = "binary"
	case time.Time:
		kind = "timestamp"
	}
	return statuspage.Property{Type: kind, Value: text(value)}
}

// text writes a value for people.
func text(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case []byte:
		return fmt.Sprintf("%x", v)
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case amqp.UUID:
		return uuid.UUID(v).String()
	}
	return fmt.Sprint(value)
}

// encode writes a message as a client's SDK does.
func encode(d statuspage.Draft) []byte {
	var b []byte
	if d.TimeToLive > 0 {
		b = amqp.AppendHeader(b, amqp.Header{Durable: true, TTL: amqp.Some(uint32(min(d.TimeToLive.Milliseconds(), math.MaxUint32)))})
	}
	var annotations amqp.Map
	if d.PartitionKey != "" {
		annotations = append(annotations, amqp.Pair{Key: amqp.Symbol("x-opt-partition-key"), Value: d.PartitionKey})
	}
	if !d.ScheduledAt.IsZero() {
		annotations = append(annotations, amqp.Pair{Key: amqp.Symbol("x-opt-scheduled-enqueue-time"), Value: d.ScheduledAt})
	}
	if len(annotations) > 0 {
		b = amqp.AppendAnnotations(b, annotations)
	}
	properties := amqp.Properties{
		Subject: d.Subject, To: d.To, ReplyTo: d.ReplyTo, ContentType: d.ContentType, GroupID: d.SessionID,
	}
	if d.MessageID != "" {
		properties.MessageID = d.MessageID
	}
	if d.CorrelationID != "" {
		properties.CorrelationID = d.CorrelationID
	}
	b = amqp.AppendProperties(b, &properties)
	if len(d.Properties) > 0 {
		var m amqp.Map
		for _, key := range slices.Sorted(maps.Keys(d.Properties)) {
			m = append(m, amqp.Pair{Key: key, Value: d.Properties[key]})
		}
		b = amqp.AppendApplicationProperties(b, m)
	}
	return amqp.AppendBodyData(b, d.Body)
}
