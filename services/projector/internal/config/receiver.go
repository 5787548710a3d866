package config

import (
	"context"

	"github.com/rs/zerolog"

	"changerelay/services/projector/internal/servicebus"
	"changerelay/services/projector/internal/session"
	"changerelay/services/projector/internal/sessionlink"
	"changerelay/services/projector/internal/settings"
)

// Values of SERVICEBUS_RECEIVER.
const (
	ReceiverAMQP = "amqp"
	ReceiverSDK  = "sdk"
)

func receiverProblem(receiver string) *settings.Problem {
	if receiver == ReceiverAMQP || receiver == ReceiverSDK {
		return nil
	}
	return settings.Problemf("SERVICEBUS_RECEIVER", "is %q, not one of %s, %s", receiver, ReceiverAMQP, ReceiverSDK)
}

// Acceptor is where sessions come from, until it is closed.
type Acceptor interface {
	session.Acceptor
	// Reached tells whether the broker has answered since this was made.
	Reached() bool
	Close(ctx context.Context) error
}

// Acceptor is the configured one. counting, the official client's, counts the
// sessions with messages either way.
func (c *Config) Acceptor(log zerolog.Logger) (sessions Acceptor, counting *servicebus.Subscription, err error) {
	bus, err := c.Bus().Reach()
	if err != nil {
		return nil, nil, err
	}
	bus.Connections, bus.Linger, bus.CloseTime = c.ConnectionsOrDefault(), c.ReceiveLinger, c.CloseTime()/2
	if c.Receiver == ReceiverSDK {
		counting, err = servicebus.New(bus, log)
		return counting, counting, err
	}
	access, err := bus.Access()
	if err != nil {
		return nil, nil, err
	}
	sessions = sessionlink.New(sessionlink.Config{
		Access: access, Topic: c.Topic, Subscription: c.Subscription, Connections: bus.Connections, Linger: bus.Linger,
	}, log)
	bus.Connections = 1
	counting, err = servicebus.New(bus, log)
	return sessions, counting, err
}
