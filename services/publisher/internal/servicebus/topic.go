// Package servicebus sends messages to an Azure Service Bus topic. It adapts
// the SDK to relay.Sender.
//
// The SDK's own retries are off: the relay retries, because it knows the order.
// A connection that may be at fault is replaced by a new one. Only one caller
// at a time connects, while the others wait for the outcome: left alone, the SDK
// opens one link for each waiting sender.
package servicebus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"golang.org/x/sync/errgroup"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/relay"
)

// closeTimeout bounds the good-byes of one connection.
const closeTimeout = 2 * time.Second

// links is how many links a connection has. A link writes one message at a time,
// and both ends work on each link apart.
const links = 4

// Topic sends to one topic. It connects when Connect says so, else at the first
// send. Send and Connect may be called from any goroutine.
type Topic struct {
	name string
	dial Dial

	mu      sync.Mutex
	link    *link    // guarded by mu; nil while there is none
	opening *opening // guarded by mu; nil while nobody connects
	closing sync.WaitGroup
}

// link is one connection with its links to the topic, which take turns.
type link struct {
	client  *azservicebus.Client
	senders [links]*azservicebus.Sender
	turn    atomic.Uint32
}

// opening is an attempt to connect that others wait for.
type opening struct {
	done chan struct{} // closed when link or err is set
	link *link
	err  error
}

// New returns a topic that is not connected.
func New(name string, dial Dial) *Topic { return &Topic{name: name, dial: dial} }

// Close says good-bye to the service. Nothing may be sent at that time or after.
func (t *Topic) Close() {
	t.mu.Lock()
	if t.link != nil {
		t.drop(t.link)
	}
	t.mu.Unlock()
	t.closing.Wait()
}

// Connect connects ahead of the first send, which is then spared the handshakes.
// Where it fails, the first send tries again, and says why.
func (t *Topic) Connect(ctx context.Context) { _, _ = t.connect(ctx) }

// Send implements relay.Sender. All messages must have the same session, unless
// the topic is not partitioned: a batch to a partitioned one has one session.
// See https://learn.microsoft.com/azure/service-bus-messaging/service-bus-partitioning
func (t *Topic) Send(ctx context.Context, messages []contract.Message) (int, error) {
	held, err := t.connect(ctx)
	if err != nil {
		return 0, t.failure(nil, err)
	}
	sender := held.senders[held.turn.Add(1)%links]
	accepted := 0
	for accepted < len(messages) {
		n, err := sendSome(ctx, sender, messages[accepted:])
		accepted += n
		if err != nil {
			return accepted, t.failure(held, err)
		}
	}
	return accepted, nil
}

// failure wraps an error for the relay, and drops a link that may be at fault.
func (t *Topic) failure(held *link, err error) error {
	class := classify(err)
	if held != nil && doubtful(class) && !errors.Is(err, context.Canceled) {
		t.mu.Lock()
		if t.link == held {
			t.drop(held)
		}
		t.mu.Unlock()
	}
	return &relay.SendError{Class: class, Err: fmt.Errorf("send to topic %q: %w", t.name, err)}
}

// drop forgets the link and closes it aside. t.mu must be held.
func (t *Topic) drop(held *link) {
	t.link = nil
	t.closing.Go(held.close)
}

// connect returns the link, and makes one when there is none.
func (t *Topic) connect(ctx context.Context) (*link, error) {
	t.mu.Lock()
	if held := t.link; held != nil {
		t.mu.Unlock()
		return held, nil
	}
	attempt, mine := t.opening, false
	if attempt == nil {
		attempt, mine = &opening{done: make(chan struct{})}, true
		t.opening = attempt
	}
	t.mu.Unlock()
	if mine {
		t.open(ctx, attempt)
	}
	select {
	case <-attempt.done:
		return attempt.link, attempt.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (t *Topic) open(ctx context.Context, attempt *opening) {
	attempt.link, attempt.err = t.openLink(ctx)
	t.mu.Lock()
	t.link, t.opening = attempt.link, nil
	t.mu.Unlock()
	close(attempt.done)
}

func (t *Topic) openLink(ctx context.Context) (*link, error) {
	client, err := t.dial()
	if err != nil {
		return nil, err
	}
	fresh := &link{client: client}
	group, ctx := errgroup.WithContext(ctx)
	for i := range fresh.senders {
		group.Go(func() error {
			sender, err := client.NewSender(t.name, nil)
			if err != nil {
				return err
			}
			fresh.senders[i] = sender
			// The SDK connects when it needs the link: to learn its limits, for instance.
			_, err = sender.NewMessageBatch(ctx, nil)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.closing.Go(fresh.close)
		return nil, err
	}
	return fresh, nil
}

func (l *link) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = l.client.Close(ctx) // the connection is given up in any case
}

// sendSome sends one message, or as many of the first ones as the link takes in
// one batch, and returns how many were accepted.
func sendSome(ctx context.Context, sender *azservicebus.Sender, messages []contract.Message) (int, error) {
	if len(messages) == 1 {
		return sendOne(ctx, sender, &messages[0])
	}
	batch, err := sender.NewMessageBatch(ctx, nil)
	if err != nil {
		return 0, err
	}
	added := 0
	for i := range messages {
		err := batch.AddAMQPAnnotatedMessage(annotated(&messages[i]), nil)
		if errors.Is(err, azservicebus.ErrMessageTooLarge) {
			break
		}
		if err != nil {
			return 0, err
		}
		added++
	}
	if added < 2 {
		// A message may be larger than a batch, and still go by itself.
		return sendOne(ctx, sender, &messages[0])
	}
	err = sender.SendMessageBatch(ctx, batch, nil)
	switch {
	case err == nil:
		return added, nil
	case classify(err) == relay.TooLarge:
		return sendOne(ctx, sender, &messages[0])
	default:
		return 0, err // a batch is accepted as a whole or not at all
	}
}

func sendOne(ctx context.Context, sender *azservicebus.Sender, message *contract.Message) (int, error) {
	if err := sender.SendAMQPAnnotatedMessage(ctx, annotated(message), nil); err != nil {
		return 0, err
	}
	return 1, nil
}
