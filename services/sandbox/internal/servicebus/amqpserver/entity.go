package amqpserver

import (
	"context"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/broker"
	"changerelay/services/sandbox/internal/servicebus/entity"
)

// batchFormat is the message format of a batch: its data sections are encoded messages.
const batchFormat = 0x80013700

// entityNode is a queue or topic that a peer sends to.
type entityNode struct {
	broker *broker.Broker
	path   string
}

func (n entityNode) accept(ctx context.Context, d *delivery) amqp.State {
	messages, err := decodeTransfer(d.format, d.payload)
	if err == nil {
		err = n.broker.Send(ctx, n.path, messages)
	}
	if err != nil {
		return amqp.Rejected{Error: asError(err)}
	}
	return amqp.Accepted{}
}

// decodeTransfer returns the messages of a transfer: one, or those of a batch.
func decodeTransfer(format uint32, payload []byte) ([]*entity.Message, error) {
	outer, err := amqp.ReadMessage(payload)
	if err != nil {
		return nil, &amqp.Error{Condition: amqp.ConditionDecodeError, Description: err.Error()}
	}
	if format != batchFormat {
		return []*entity.Message{messageOf(outer)}, nil
	}
	items, err := outer.Data()
	if err != nil {
		return nil, &amqp.Error{Condition: amqp.ConditionDecodeError, Description: err.Error()}
	}
	messages := make([]*entity.Message, 0, len(items))
	for _, item := range items {
		m, err := amqp.ReadMessage(item)
		if err != nil {
			return nil, &amqp.Error{Condition: amqp.ConditionDecodeError, Description: err.Error()}
		}
		messages = append(messages, messageOf(m))
	}
	return messages, nil
}
