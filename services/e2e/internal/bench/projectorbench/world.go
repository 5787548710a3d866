package projectorbench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"

	"changerelay/services/e2e/internal/bench/stage"
)

// InWorld is what it took a projector to empty a subscription in a world.
type InWorld struct {
	Drained
	// Messages are the bytes of the messages as they are sent on, Carried all that
	// came over the connections to the broker.
	Messages, Carried int64
	// Flowing is how long the messages came: from the first 64 KiB, which are more
	// than the handshakes take, to when as much had come as all messages are.
	Flowing time.Duration
}

// DrainInWorld fills the stage's topic, has the world become another one, and has
// a projector with settings empty it.
func DrainInWorld(ctx context.Context, s *stage.Stage, shape Shape, world string, env map[string]string) (r InWorld, err error) {
	b := bench{s, s.Endpoints(), s.Topic(topic), shape}
	if err := b.fill(ctx); err != nil {
		return r, err
	}
	size, err := b.size(ctx)
	if err != nil {
		return r, err
	}
	r.Messages = int64(shape.total()) * size
	if err := s.Become(ctx, world); err != nil {
		return r, err
	}
	m, err := newMeter()
	if err != nil {
		return r, err
	}
	straight := func(server string) (string, error) { return server, nil }
	if b.endpoints, err = b.endpoints.Through(straight, m.before); err != nil {
		return r, err
	}
	ctx, stop := context.WithCancel(ctx)
	metering := make(chan error, 1)
	go func() { metering <- m.run(ctx) }()
	defer func() {
		stop()
		err = errors.Join(err, <-metering)
	}()
	if r.Drained, err = b.relay(ctx, 1, projectorSubscription, env); err != nil {
		return r, err
	}
	r.Carried, r.Flowing = m.carried(r.Messages)
	if r.Flowing <= 0 {
		return r, fmt.Errorf("%d bytes came, of %d that the messages have", r.Carried, r.Messages)
	}
	return r, nil
}

// size is that of one of the messages, in bytes, as the broker gives it out.
func (b bench) size(ctx context.Context) (int64, error) {
	client, err := azservicebus.NewClientFromConnectionString(b.endpoints.ServiceBus, nil)
	if err != nil {
		return 0, fmt.Errorf("open Service Bus: %w", err)
	}
	defer func() { _ = client.Close(context.WithoutCancel(ctx)) }()
	session, err := client.AcceptSessionForSubscription(ctx, b.topic, projectorSubscription, sessionID(0), nil)
	if err != nil {
		return 0, fmt.Errorf("accept a session: %w", err)
	}
	defer func() { _ = session.Close(context.WithoutCancel(ctx)) }()
	peeked, err := session.PeekMessages(ctx, 1, nil)
	if err != nil || len(peeked) == 0 {
		return 0, fmt.Errorf("peek at a message: %d found: %w", len(peeked), err)
	}
	m := peeked[0]
	wire := amqp.Message{
		Header:                &amqp.MessageHeader{Durable: true, DeliveryCount: m.DeliveryCount},
		Annotations:           amqp.Annotations{},
		Properties:            &amqp.MessageProperties{MessageID: m.MessageID, GroupID: m.SessionID, Subject: m.Subject, ContentType: m.ContentType},
		ApplicationProperties: m.ApplicationProperties, Data: [][]byte{m.Body},
	}
	maps.Copy(wire.Annotations, m.RawAMQPMessage.MessageAnnotations)
	encoded, err := wire.MarshalBinary()
	return int64(len(encoded)), err
}
