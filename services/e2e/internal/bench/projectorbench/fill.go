package projectorbench

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"golang.org/x/sync/errgroup"

	"changerelay/services/e2e/internal/bench/attributes"
)

// filler makes an event as large as those of the field: some 500 bytes.
var filler = strings.Repeat("x", 300)

func sessionID(session int) string { return fmt.Sprintf("session-%06d", session) }

// fill sends the backlog.
func (b bench) fill(ctx context.Context) error {
	const senders = 16
	client, err := azservicebus.NewClientFromConnectionString(b.endpoints.ServiceBus, nil)
	if err != nil {
		return fmt.Errorf("open Service Bus: %w", err)
	}
	defer func() { _ = client.Close(context.WithoutCancel(ctx)) }()
	sender, err := client.NewSender(b.topic, nil)
	if err != nil {
		return fmt.Errorf("open a sender: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(senders)
	text := b.shape.text()
	for session := range b.shape.Sessions {
		group.Go(func() error { return fillSession(ctx, sender, session, b.shape.Messages, text) })
	}
	return group.Wait()
}

func fillSession(ctx context.Context, sender *azservicebus.Sender, session, messages int, text string) error {
	batch, err := sender.NewMessageBatch(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin a batch: %w", err)
	}
	for version := 1; version <= messages; {
		err := batch.AddMessage(messageOf(sessionID(session), version, text), nil)
		full := errors.Is(err, azservicebus.ErrMessageTooLarge)
		if err != nil && !full {
			return fmt.Errorf("add to a batch: %w", err)
		}
		if !full {
			version++
		}
		if full || version > messages {
			if err := sender.SendMessageBatch(ctx, batch, nil); err != nil {
				return fmt.Errorf("send session %d: %w", session, err)
			}
			if batch, err = sender.NewMessageBatch(ctx, nil); err != nil {
				return fmt.Errorf("begin a batch: %w", err)
			}
		}
	}
	return nil
}

// messageOf is the message of an event, as the contract has it.
func messageOf(aggregate string, version int, text string) *azservicebus.Message {
	kind, format := "Changed", "application/json"
	id := fmt.Sprintf("%s/%d", aggregate, version)
	return &azservicebus.Message{
		MessageID: &id, SessionID: &aggregate, PartitionKey: &aggregate, Subject: &kind, ContentType: &format,
		Body:                  fmt.Appendf(nil, `{"n":%d,"text":%q}`, version, text),
		ApplicationProperties: attributes.Of(id, aggregate, kind, version),
	}
}
