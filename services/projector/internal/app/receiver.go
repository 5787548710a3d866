package app

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
	receiverAMQP = "amqp"
	receiverSDK  = "sdk"
)

func receiverProblem(receiver string) *settings.Problem {
	if receiver == receiverAMQP || receiver == receiverSDK {
		return nil
	}
	return settings.Problemf("SERVICEBUS_RECEIVER", "is %q, not one of %s, %s", receiver, receiverAMQP, receiverSDK)
}

// acceptor is where sessions come from, until it is closed.
type acceptor interface {
	session.Acceptor
	Close(ctx context.Context) error
}

// acceptor is the configured one. counting, the official client's, counts the
// sessions with messages either way.
func (c *Config) acceptor(log zerolog.Logger) (sessions acceptor, counting *servicebus.Subscription, err error) {
	bus, err := c.bus().reach()
	if err != nil {
		return nil, nil, err
	}
	bus.Connections, bus.Linger, bus.CloseTime = c.connections(), c.ReceiveLinger, c.closeTime()/2
	if c.Receiver == receiverSDK {
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
