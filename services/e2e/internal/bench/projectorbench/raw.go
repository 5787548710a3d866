package projectorbench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"golang.org/x/sync/errgroup"
)

// What the raw measurements and the projector have in common.
const (
	holders     = 64 // sessions at once, as many as the projector holds
	connections = 8
	batchSize   = 100
	settles     = 32 // at once in a session
	linger      = 10 * time.Millisecond
)

// rawSessions receives and settles everything with the bare client, and does
// nothing else with it.
func (b bench) rawSessions(ctx context.Context, subscription string) (time.Duration, error) {
	clients := make([]*azservicebus.Client, connections)
	for i := range clients {
		client, err := azservicebus.NewClientFromConnectionString(b.endpoints.ServiceBus, nil)
		if err != nil {
			return 0, fmt.Errorf("open Service Bus: %w", err)
		}
		defer func() { _ = client.Close(context.WithoutCancel(ctx)) }()
		clients[i] = client
	}
	ctx, done := context.WithCancel(ctx)
	defer done()
	var settled atomic.Int64
	began := time.Now()
	var took atomic.Int64
	group, gctx := errgroup.WithContext(ctx)
	for i := range holders {
		group.Go(func() error {
			for gctx.Err() == nil {
				n, err := b.rawSession(gctx, clients[i%connections], subscription)
				if err != nil && ctx.Err() == nil {
					return err
				}
				if settled.Add(int64(n)) >= int64(b.shape.total()) {
					took.CompareAndSwap(0, int64(time.Since(began)))
					done()
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	if took.Load() == 0 {
		return 0, fmt.Errorf("receive with the bare client: %w", context.Cause(ctx))
	}
	return time.Duration(took.Load()), nil
}

// rawSession takes the next session and empties it.
func (b bench) rawSession(ctx context.Context, client *azservicebus.Client, subscription string) (settled int, err error) {
	accept, cancel := context.WithTimeout(ctx, 5*time.Second)
	receiver, err := client.AcceptNextSessionForSubscription(accept, b.topic, subscription, nil)
	cancel()
	if err != nil {
		if e, ok := errors.AsType[*azservicebus.Error](err); ok && e.Code == azservicebus.CodeTimeout || accept.Err() != nil {
			return 0, nil
		}
		return 0, fmt.Errorf("accept a session: %w", err)
	}
	defer func() { _ = receiver.Close(context.WithoutCancel(ctx)) }()
	for {
		receive, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		messages, err := receiver.ReceiveMessages(receive, batchSize, &azservicebus.ReceiveMessagesOptions{TimeAfterFirstMessage: linger})
		cancel()
		if err != nil && receive.Err() == nil {
			return settled, fmt.Errorf("receive: %w", err)
		}
		group, gctx := errgroup.WithContext(ctx)
		group.SetLimit(settles)
		for _, m := range messages {
			group.Go(func() error { return receiver.CompleteMessage(gctx, m, nil) })
		}
		if err := group.Wait(); err != nil {
			return settled, fmt.Errorf("complete: %w", err)
		}
		settled += len(messages)
		if len(messages) < batchSize {
			return settled, nil
		}
	}
}
