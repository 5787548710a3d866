package amqpserver

import (
	"context"

	"github.com/google/uuid"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/broker"
	"changerelay/services/sandbox/internal/servicebus/entity"
)

const (
	// peekMost bounds the messages of one peek.
	peekMost = 256
	// peekBytes bounds their size together; the first message is given whatever its size.
	peekBytes = 1 << 20
)

func (m *management) renewLock(_ context.Context, req *request) (response, error) {
	tokens, err := req.tokens("lock-tokens")
	if err != nil {
		return response{}, err
	}
	until, err := m.broker().RenewMessageLocks(m.entity, tokens)
	if err != nil {
		return response{}, err
	}
	return ok(amqp.Map{{Key: "expirations", Value: until}}), nil
}

func (m *management) peek(_ context.Context, req *request) (response, error) {
	from, err := req.integer("from-sequence-number")
	if err != nil {
		return response{}, err
	}
	count, err := req.integer("message-count")
	if err != nil {
		return response{}, err
	}
	found, err := m.broker().Peek(m.entity, from, int(min(max(count, 1), peekMost)), req.optionalText("session-id"))
	if err != nil {
		return response{}, err
	}
	size, fit := int64(0), 0
	for _, d := range found {
		if size += d.Size; fit > 0 && size > peekBytes {
			break
		}
		fit++
	}
	return messagesResponse(found[:fit], false)
}

// messagesResponse answers with a list of maps, each with an encoded message.
func messagesResponse(found []*entity.Delivery, locked bool) (response, error) {
	if len(found) == 0 {
		return noContent(), nil
	}
	list := make([]any, 0, len(found))
	for _, d := range found {
		encoded, err := encodeDelivery(d, locked)
		if err != nil {
			return response{}, err
		}
		entry := amqp.Map{{Key: "message", Value: encoded}}
		if locked && d.LockToken != uuid.Nil {
			entry = append(entry, amqp.Pair{Key: "lock-token", Value: amqp.UUID(d.LockToken)})
		}
		list = append(list, entry)
	}
	return ok(amqp.Map{{Key: "messages", Value: list}}), nil
}

func (m *management) receiveDeferred(_ context.Context, req *request) (response, error) {
	numbers, err := req.integers("sequence-numbers")
	if err != nil {
		return response{}, err
	}
	mode := broker.PeekLock
	if settle, isNumber := amqp.AsInt(req.field("receiver-settle-mode")); isNumber && settle == amqp.ReceiverFirst {
		mode = broker.ReceiveAndDelete
	}
	session := req.optionalText("session-id")
	if o := m.receiver(req); session == nil && o != nil && o.session {
		id := o.receiver.SessionID()
		session = &id
	}
	found, err := m.broker().ReceiveDeferred(m.entity, numbers, mode, session, int64(m.c.srv.cfg.MaxQueuedBytes))
	if err != nil {
		return response{}, err
	}
	return messagesResponse(found, mode == broker.PeekLock)
}

func (m *management) updateDisposition(_ context.Context, req *request) (response, error) {
	tokens, err := req.tokens("lock-tokens")
	if err != nil {
		return response{}, err
	}
	outcome, err := req.outcome()
	if err != nil {
		return response{}, err
	}
	for _, token := range tokens {
		if err := m.broker().SettleByToken(m.entity, token, outcome); err != nil { //nolint:contextcheck // a settlement is carried out to its end
			return response{}, err
		}
	}
	return ok(nil), nil
}

// outcome reads a disposition-status; "defered" is the service's own spelling.
func (r *request) outcome() (entity.Outcome, error) {
	modify, _ := r.field("properties-to-modify").(amqp.Map)
	properties := propertiesOf(modify)
	switch status := r.text("disposition-status"); status {
	case "completed":
		return entity.Complete{}, nil
	case "abandoned":
		return entity.Abandon{Properties: properties}, nil
	case "defered", "deferred":
		return entity.Defer{Properties: properties}, nil
	case "suspended":
		return entity.DeadLetter{
			Reason:      r.text("deadletter-reason"),
			Description: r.text("deadletter-description"),
			Properties:  properties,
		}, nil
	}
	return nil, argument("disposition-status", "completed, abandoned, defered or suspended")
}

func (m *management) schedule(ctx context.Context, req *request) (response, error) {
	var messages []*entity.Message
	for _, item := range req.items("messages") {
		entry, _ := item.(amqp.Map)
		encoded, isBinary := entry.Get("message").([]byte)
		if !isBinary {
			return response{}, argument("message", "an encoded message")
		}
		decoded, err := decodeTransfer(0, encoded)
		if err != nil {
			return response{}, err
		}
		messages = append(messages, decoded...)
	}
	if len(messages) == 0 {
		return response{}, argument("messages", "a list of messages")
	}
	numbers, err := m.broker().Schedule(ctx, m.entity, messages)
	if err != nil {
		return response{}, err
	}
	return ok(amqp.Map{{Key: "sequence-numbers", Value: numbers}}), nil
}

func (m *management) cancelScheduled(ctx context.Context, req *request) (response, error) {
	numbers, err := req.integers("sequence-numbers")
	if err != nil {
		return response{}, err
	}
	if err := m.broker().CancelScheduled(ctx, m.entity, numbers); err != nil {
		return response{}, err
	}
	return ok(nil), nil
}
