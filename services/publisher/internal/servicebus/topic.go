// Package servicebus sends messages to an Azure Service Bus topic. It adapts
// the SDK to relay.Sender.
//
// The SDK's own retries are off: the relay retries, because it knows the order.
// A connection that may be at fault is replaced by a new one. Only one caller
// at a time connects, while the others wait for the outcome: left alone, the SDK
// opens one link for each waiting sender.
//
// A link that has ended answers every later send with the reason of its end, that
// of its connection included, and the SDK does not say which it was. So that a
// send was refused for its size is never believed of a link that was there
// before: the message is sent alone, over a connection of its own whose link has
// opened. Only what that link refuses is too large.
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
	trying  chan struct{} // holds a token while a message is sent over a connection of its own
}

// link is one connection with its links to the topic, which take turns.
type link struct {
	client  *azservicebus.Client
	senders [links]*azservicebus.Sender
	turn    atomic.Uint32
	users   sync.WaitGroup // sends; added to under Topic.mu while it is Topic.link
	sending sync.WaitGroup
	sends   chan func() // to those of sending that wait for another send
}

// tooLargeError says that a message is too large: it is only ever what a link
// answers that had opened for this message alone.
type tooLargeError struct{ error }

// opening is an attempt to connect that others wait for.
type opening struct {
	done chan struct{} // closed when it is over
	err  error         // to be read then; nil where there is a link
}

// New returns a topic that is not connected.
func New(name string, dial Dial) *Topic {
	return &Topic{name: name, dial: dial, trying: make(chan struct{}, 1)}
}

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
func (t *Topic) Connect(ctx context.Context) {
	if held, err := t.connect(ctx); err == nil {
		held.users.Done()
	}
}

// Send implements relay.Sender. All messages must have the same session, unless
// the topic is not partitioned: a batch to a partitioned one has one session.
// See https://learn.microsoft.com/azure/service-bus-messaging/service-bus-partitioning
func (t *Topic) Send(ctx context.Context, messages []contract.Message) (int, error) {
	accepted := 0
	for accepted < len(messages) {
		n, err := t.sendSome(ctx, messages[accepted:])
		accepted += n
		if err != nil {
			return accepted, &relay.SendError{
				Class: classify(err), Wait: advised(classify(err), err), Err: fmt.Errorf("send to topic %q: %w", t.name, err),
			}
		}
	}
	return accepted, nil
}

// sendSome sends some of the first messages, and drops a link that may be at fault.
func (t *Topic) sendSome(ctx context.Context, messages []contract.Message) (int, error) {
	held, err := t.connect(ctx)
	if err != nil {
		return 0, err
	}
	defer held.users.Done()
	n, err := held.sendSome(ctx, messages)
	if aboutSize(err) {
		n, err = t.tryAlone(ctx, held, &messages[0])
	}
	if err != nil && (errors.Is(err, errCut) || doubtful(classify(err), err) && !errors.Is(err, context.Canceled)) {
		t.mu.Lock()
		if t.link == held {
			t.drop(held)
		}
		t.mu.Unlock()
	}
	return n, err
}

// tryAlone sends a message that a link has refused for its size over a connection
// of its own. The link that refused it may have ended: it is replaced. Where that
// has happened meanwhile nothing is sent, and the message is to be sent again.
func (t *Topic) tryAlone(ctx context.Context, refused *link, message *contract.Message) (int, error) {
	select {
	case t.trying <- struct{}{}:
		defer func() { <-t.trying }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	t.mu.Lock()
	replaced := t.link != refused
	t.mu.Unlock()
	if replaced {
		return 0, nil
	}
	fresh, err := t.openLink(ctx)
	if err != nil {
		return 0, fmt.Errorf("open a link for one message: %w", err)
	}
	err = fresh.sendOne(ctx, fresh.senders[0], message)
	switch {
	case err == nil:
		t.replace(refused, fresh)
		return 1, nil
	case aboutSize(err):
		err = tooLargeError{err}
	}
	t.closing.Go(fresh.close)
	return 0, err
}

// replace puts a link in the place of another, which is closed when nobody sends
// over it any more.
func (t *Topic) replace(held, by *link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.link != held {
		t.closing.Go(by.close)
		return
	}
	t.link = by
	t.closing.Go(held.retire)
}

// drop forgets the link and closes it aside. t.mu must be held.
func (t *Topic) drop(held *link) {
	t.link = nil
	t.closing.Go(held.close)
}

// connect returns the link, and makes one when there is none. The caller is one
// of its users until it says that it is done.
func (t *Topic) connect(ctx context.Context) (*link, error) {
	for {
		t.mu.Lock()
		if held := t.link; held != nil {
			held.users.Add(1)
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
			if attempt.err != nil {
				return nil, attempt.err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (t *Topic) open(ctx context.Context, attempt *opening) {
	fresh, err := t.openLink(ctx)
	t.mu.Lock()
	t.link, t.opening, attempt.err = fresh, nil, err
	t.mu.Unlock()
	close(attempt.done)
}

func (t *Topic) openLink(ctx context.Context) (*link, error) {
	client, err := t.dial()
	if err != nil {
		return nil, err
	}
	fresh := newLink(client)
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

func newLink(client *azservicebus.Client) *link {
	return &link{client: client, sends: make(chan func())}
}

// retire closes the link when nobody sends over it any more.
func (l *link) retire() {
	l.users.Wait()
	l.close()
}

func (l *link) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = l.client.Close(ctx) // the connection is given up in any case
	l.users.Wait()          // none of them begins another send
	close(l.sends)
	l.sending.Wait()
}

// errCut is wrapped by the error of a send that was given up in the middle.
var errCut = errors.New("the send was cut off")

// whole does a send that is never cut off in the middle: a large message takes
// several frames, and the client writes no more of them once its context ends,
// so that the next message on the link would be taken for the rest. Where ctx
// ends first, the send is left to the end of its connection, which must follow.
func (l *link) whole(ctx context.Context, send func(context.Context) error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	done := make(chan error, 1)
	l.aside(func() { done <- send(context.WithoutCancel(ctx)) })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errCut, ctx.Err())
	}
}

// aside does a send on a goroutine of its own, one that has done others where there is
// one: the client goes so deep that a fresh one spends a good part of its time on a larger
// stack.
func (l *link) aside(send func()) {
	select {
	case l.sends <- send:
	default:
		l.sending.Go(func() {
			for more := true; more; send, more = <-l.sends {
				send()
			}
		})
	}
}

// sendSome sends one message, or as many of the first ones as the link takes in
// one batch, and returns how many were accepted.
func (l *link) sendSome(ctx context.Context, messages []contract.Message) (int, error) {
	sender := l.senders[l.turn.Add(1)%links]
	batch, added, err := fill(ctx, sender, messages)
	if err != nil {
		return 0, err
	}
	if added > 1 {
		err := l.whole(ctx, func(ctx context.Context) error { return sender.SendMessageBatch(ctx, batch, nil) })
		switch {
		case err == nil:
			return added, nil
		case !aboutSize(err) || ended(err):
			return 0, err // a batch is accepted as a whole or not at all
		}
	}
	// A message may be larger than a batch, and still go by itself.
	if err := l.sendOne(ctx, sender, &messages[0]); err != nil {
		return 0, err
	}
	return 1, nil
}

// fill puts as many of the messages in a batch as it takes, if there are several.
func fill(ctx context.Context, sender *azservicebus.Sender, messages []contract.Message) (*azservicebus.MessageBatch, int, error) {
	if len(messages) < 2 {
		return nil, 0, nil
	}
	batch, err := sender.NewMessageBatch(ctx, nil)
	if err != nil {
		return nil, 0, err
	}
	for i := range messages {
		err := batch.AddAMQPAnnotatedMessage(annotated(&messages[i]), nil)
		if errors.Is(err, azservicebus.ErrMessageTooLarge) {
			return batch, i, nil
		}
		if err != nil {
			return nil, 0, err
		}
	}
	return batch, len(messages), nil
}

func (l *link) sendOne(ctx context.Context, sender *azservicebus.Sender, message *contract.Message) error {
	return l.whole(ctx, func(ctx context.Context) error { return sender.SendAMQPAnnotatedMessage(ctx, annotated(message), nil) })
}
