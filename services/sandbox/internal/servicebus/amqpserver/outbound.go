package amqpserver

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/entity"
)

// The properties in which the service keeps why a message was dead-lettered.
const (
	deadLetterReason      = "DeadLetterReason"
	deadLetterDescription = "DeadLetterErrorDescription"
)

// deliveryTag is a lock token in the byte order of .NET's Guid: the first three groups are little endian. Clients turn
// it back; in annotations and management requests tokens are UUIDs in the usual order.
func deliveryTag(t uuid.UUID) []byte {
	return []byte{t[3], t[2], t[1], t[0], t[5], t[4], t[7], t[6], t[8], t[9], t[10], t[11], t[12], t[13], t[14], t[15]}
}

// encodeDelivery encodes a message for a receiver: a header and annotations of the service in front of what the sender
// sent. withToken adds the lock token as a delivery annotation, for messages that travel without a delivery tag.
func encodeDelivery(d *entity.Delivery, withToken bool) ([]byte, error) {
	b := make([]byte, 0, len(d.Payload)+256)
	header := amqp.Header{Durable: true, DeliveryCount: d.DeliveryCount}
	if !d.ExpiresAt.IsZero() {
		ttl := d.ExpiresAt.Sub(d.EnqueuedTime).Milliseconds()
		header.TTL = amqp.Some(uint32(min(max(ttl, 0), math.MaxUint32)))
	}
	b = amqp.AppendHeader(b, header)
	if withToken && d.LockToken != uuid.Nil {
		b = amqp.AppendDeliveryAnnotations(b, amqp.Map{{Key: amqp.Symbol(annotationLockToken), Value: amqp.UUID(d.LockToken)}})
	}
	own, bare, err := amqp.CutAnnotations(d.Payload)
	if err != nil {
		return nil, err
	}
	b = amqp.AppendAnnotations(b, append(serviceAnnotations(d), own...))
	return amqp.OverlayApplicationProperties(b, bare, overlayOf(d))
}

func serviceAnnotations(d *entity.Delivery) amqp.Map {
	m := make(amqp.Map, 0, 8)
	add := func(key amqp.Symbol, value any) { m = append(m, amqp.Pair{Key: key, Value: value}) }
	if d.PartitionKey != "" {
		add(annotationPartitionKey, d.PartitionKey)
	}
	add(annotationEnqueued, d.EnqueuedTime)
	add(annotationSequence, d.SequenceNumber)
	if d.EnqueuedSequenceNumber != 0 {
		add(annotationEnqueuedSeq, d.EnqueuedSequenceNumber)
	}
	if !d.LockedUntil.IsZero() {
		add(annotationLockedUntil, d.LockedUntil)
	}
	if d.DeadLetterSource != "" {
		add(annotationSource, d.DeadLetterSource)
	}
	add(annotationState, int32(d.State))
	return m
}

// overlayOf are the application properties that were set after the message was sent.
func overlayOf(d *entity.Delivery) amqp.Map {
	if len(d.Modified) == 0 && d.DeadLetterReason == "" && d.DeadLetterDescription == "" {
		return nil
	}
	var m amqp.Map
	for _, key := range slices.Sorted(maps.Keys(d.Modified)) {
		if key != deadLetterReason && key != deadLetterDescription {
			m = append(m, amqp.Pair{Key: key, Value: wireValue(d.Modified[key])})
		}
	}
	if d.DeadLetterReason != "" || d.DeadLetterDescription != "" {
		m = append(m,
			amqp.Pair{Key: deadLetterReason, Value: d.DeadLetterReason},
			amqp.Pair{Key: deadLetterDescription, Value: d.DeadLetterDescription})
	}
	return m
}

// wireValue is the inverse of propertiesOf for one value.
func wireValue(v any) any {
	switch v := v.(type) {
	case uuid.UUID:
		return amqp.UUID(v)
	case time.Time:
		return v.UTC()
	}
	return v
}

// outcomeOf translates a peer's delivery state into the broker's outcome and the state of the answer. A state the
// broker has no outcome for gives nil.
func outcomeOf(s amqp.State) (entity.Outcome, amqp.State) {
	switch s := s.(type) {
	case amqp.Accepted:
		return entity.Complete{}, s
	case amqp.Released, nil:
		return entity.Release{}, amqp.Released{}
	case amqp.Modified:
		properties := propertiesOf(s.MessageAnnotations)
		if s.UndeliverableHere {
			return entity.Defer{Properties: properties}, s
		}
		return entity.Abandon{Properties: properties}, s
	case amqp.Rejected:
		return deadLetterOf(s.Error), amqp.Rejected{}
	}
	return nil, nil
}

// deadLetterOf reads reason and description from the info map, where clients put them, or else from the error itself.
func deadLetterOf(e *amqp.Error) entity.DeadLetter {
	if e == nil {
		return entity.DeadLetter{}
	}
	properties := propertiesOf(e.Info)
	reason, _ := properties[deadLetterReason].(string)
	description, _ := properties[deadLetterDescription].(string)
	delete(properties, deadLetterReason)
	delete(properties, deadLetterDescription)
	if e.Condition != conditionDeadLetter {
		reason, description = e.Condition, e.Description
	}
	return entity.DeadLetter{Reason: reason, Description: description, Properties: properties}
}
