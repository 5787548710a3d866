package amqpserver

import (
	"encoding/hex"
	"strconv"
	"time"

	"github.com/google/uuid"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/entity"
)

// Annotations of the service (AMQP 1.0 in Azure Service Bus: protocol guide, message annotations).
const (
	annotationPartitionKey  = "x-opt-partition-key"
	annotationScheduledTime = "x-opt-scheduled-enqueue-time"
	annotationSequence      = "x-opt-sequence-number"
	annotationEnqueuedSeq   = "x-opt-enqueue-sequence-number"
	annotationEnqueued      = "x-opt-enqueued-time"
	annotationLockedUntil   = "x-opt-locked-until"
	annotationSource        = "x-opt-deadletter-source"
	annotationState         = "x-opt-message-state"
	annotationLockToken     = "x-opt-lock-token"
)

// messageOf is the broker's view of a message. Its payload is the sender's own annotations, if there are any, followed
// by the bare message as it came.
func messageOf(m *amqp.Message) *entity.Message {
	p := &m.Properties
	out := &entity.Message{
		MessageID:        identifier(p.MessageID),
		SessionID:        p.GroupID,
		PartitionKey:     m.Annotations.String(annotationPartitionKey),
		Subject:          p.Subject,
		To:               p.To,
		ReplyTo:          p.ReplyTo,
		ReplyToSessionID: p.ReplyToGroupID,
		CorrelationID:    identifier(p.CorrelationID),
		ContentType:      p.ContentType,
		TimeToLive:       timeToLive(m),
		Properties:       propertiesOf(m.ApplicationProperties),
	}
	out.ScheduledEnqueueTime, _ = m.Annotations.Get(annotationScheduledTime).(time.Time)
	// The payload is copied: it would keep a whole batch alive otherwise.
	own := ownAnnotations(m.Annotations)
	out.Payload = make([]byte, 0, len(m.Bare)+64*len(own))
	if len(own) > 0 {
		out.Payload = amqp.AppendAnnotations(out.Payload, own)
	}
	if p.MessageID == nil {
		// The service gives an id to a message without one. It is for receivers: duplicates are not looked for by it.
		p.MessageID = newMessageID()
		out.Payload = amqp.AppendProperties(out.Payload, p)
		m.Bare = amqp.CutProperties(m.Bare)
	}
	out.Payload = append(out.Payload, m.Bare...)
	return out
}

// newMessageID has the form of the service's: a UUID without dashes.
func newMessageID() string {
	id := uuid.New()
	return hex.EncodeToString(id[:])
}

// ownAnnotations leaves out those the service sets itself.
func ownAnnotations(all amqp.Map) amqp.Map {
	var own amqp.Map
	for _, p := range all {
		switch key, _ := amqp.AsString(p.Key); key {
		case annotationPartitionKey, annotationSequence, annotationEnqueuedSeq, annotationEnqueued,
			annotationLockedUntil, annotationSource, annotationState:
		default:
			own = append(own, p)
		}
	}
	return own
}

// timeToLive is the header's ttl, or the time up to the absolute expiry.
func timeToLive(m *amqp.Message) time.Duration {
	if m.Header.TTL.Set {
		return time.Duration(m.Header.TTL.Value) * time.Millisecond
	}
	p := &m.Properties
	if !p.AbsoluteExpiry.IsZero() && p.AbsoluteExpiry.After(p.Creation) && !p.Creation.IsZero() {
		return p.AbsoluteExpiry.Sub(p.Creation)
	}
	return 0
}

// identifier is a message id or correlation id as text (part 3, sections 3.2.11 to 3.2.14).
func identifier(id any) string {
	switch id := id.(type) {
	case string:
		return id
	case uint64:
		return strconv.FormatUint(id, 10)
	case amqp.UUID:
		return uuid.UUID(id).String()
	case []byte:
		return hex.EncodeToString(id)
	}
	return ""
}

// propertiesOf turns application properties into what the broker's filters know.
func propertiesOf(m amqp.Map) map[string]any {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]any, len(m))
	for _, p := range m {
		key, ok := amqp.AsString(p.Key)
		if !ok {
			continue
		}
		switch v := p.Value.(type) {
		case amqp.Symbol:
			out[key] = string(v)
		case amqp.UUID:
			out[key] = uuid.UUID(v)
		case amqp.Char:
			out[key] = string(rune(v))
		default:
			out[key] = v
		}
	}
	return out
}
