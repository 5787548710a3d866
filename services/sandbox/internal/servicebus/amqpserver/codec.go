package amqpserver

import (
	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/entity"
)

// Received is a message as its receiver would read it: the sender's sections
// under what the service and later outcomes have laid over them.
func Received(d *entity.Delivery) (*amqp.Message, error) {
	encoded, err := encodeDelivery(d, false)
	if err != nil {
		return nil, err
	}
	return amqp.ReadMessage(encoded)
}

// Sent is an encoded message as the broker takes it from a sender.
func Sent(encoded []byte) (*entity.Message, error) {
	messages, err := decodeTransfer(0, encoded)
	if err != nil {
		return nil, err
	}
	return messages[0], nil
}

// Connections counts those that are open.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}
