package servicebus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/rs/zerolog"

	"changerelay/services/projector/internal/session"
)

// DeadLetters is the dead-letter queue of a subscription. It has no sessions.
type DeadLetters struct {
	client   *azservicebus.Client
	receiver deadReceiver
}

// deadReceiver is what is used of the client's receiver.
type deadReceiver interface {
	PeekMessages(ctx context.Context, most int, options *azservicebus.PeekMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
	ReceiveMessages(ctx context.Context, most int, options *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
	CompleteMessage(ctx context.Context, m *azservicebus.ReceivedMessage, options *azservicebus.CompleteMessageOptions) error
	AbandonMessage(ctx context.Context, m *azservicebus.ReceivedMessage, options *azservicebus.AbandonMessageOptions) error
	Close(ctx context.Context) error
}

// DeadLetter is one dead-lettered message.
type DeadLetter struct {
	session.Message
	// Reason and Description are what it was dead-lettered with.
	Reason, Description string
}

// How many messages are asked for at once, each of which comes with its body.
const (
	deadPage = 20
	// deadPageBytes bounds what they weigh, unless one alone weighs more, or they are
	// much heavier than those before them.
	deadPageBytes = 4 << 20
)

// pager says how many messages are asked for next.
type pager struct{ most int }

// next is one at first. After a page of others it is as many as would weigh
// deadPageBytes if all were as heavy as the heaviest of them, and twice as many at most.
func (p *pager) next(page []*azservicebus.ReceivedMessage) int {
	heaviest := 1
	for _, m := range page {
		heaviest = max(heaviest, len(m.Body))
	}
	p.most = max(1, min(2*p.most, deadPage, deadPageBytes/heaviest))
	return p.most
}

// OpenDeadLetters opens the dead-letter queue of the configured subscription.
func OpenDeadLetters(cfg Config) (*DeadLetters, error) {
	client, err := (&Subscription{cfg: cfg, log: zerolog.Nop()}).dial(func() {}, func() {})
	if err != nil {
		return nil, err
	}
	receiver, err := client.NewReceiverForSubscription(cfg.Topic, cfg.Subscription,
		&azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	if err != nil {
		return nil, fmt.Errorf("open the dead letters of subscription %q: %w", cfg.Subscription, err)
	}
	return &DeadLetters{client, receiver}, nil
}

// Close closes the connection.
func (d *DeadLetters) Close(ctx context.Context) error {
	return errors.Join(d.receiver.Close(ctx), d.client.Close(ctx))
}

// Peek calls each for the dead letters there are, without taking their locks. It fails at
// one that cannot be read, once it has called each for those before it.
func (d *DeadLetters) Peek(ctx context.Context, each func(DeadLetter) error) error {
	var page []*azservicebus.ReceivedMessage
	var err error
	last := int64(0)
	for pages := (pager{}); ; {
		// The client goes on behind the last message that it has peeked at.
		page, err = readable(func() ([]*azservicebus.ReceivedMessage, error) {
			return d.receiver.PeekMessages(ctx, pages.next(page), nil)
		})
		if e, ok := errors.AsType[*azservicebus.Error](err); ok && e.Code == azservicebus.CodeNotFound {
			return fmt.Errorf("peek at dead letters: %w: %w", ErrNoEntity, err)
		}
		if err != nil && pages.most > 1 && ctx.Err() == nil {
			pages = pager{} // it may be one of them
			continue
		}
		if err != nil {
			return fmt.Errorf("peek at the first dead letter after number %d: %w", last, err)
		}
		if len(page) == 0 {
			return nil
		}
		for _, m := range page {
			last = value(m.SequenceNumber)
			if err := each(deadLetter(m)); err != nil {
				return err
			}
		}
	}
}

// At returns the dead letter with a number, without taking its lock; false where
// there is none.
func (d *DeadLetters) At(ctx context.Context, number int64) (DeadLetter, bool, error) {
	page, err := readable(func() ([]*azservicebus.ReceivedMessage, error) {
		return d.receiver.PeekMessages(ctx, 1, &azservicebus.PeekMessagesOptions{FromSequenceNumber: &number})
	})
	if err != nil {
		return DeadLetter{}, false, fmt.Errorf("peek at dead letter %d: %w", number, err)
	}
	if len(page) == 0 || value(page[0].SequenceNumber) != number {
		return DeadLetter{}, false, nil
	}
	return deadLetter(page[0]), true, nil
}

// Removal removes a dead letter that was received.
type Removal func() error

// Discard removes dead letters by their numbers: it calls each for them, which does so
// by the Removal. Others, and what each fails for, are locked meanwhile and given back; of each only
// the lock is kept. It asks for one at a time: credit that is left over would take
// back what is given back. It ends without an error when no more come for wait.
func (d *DeadLetters) Discard(ctx context.Context, wait time.Duration, numbers []int64, each func(DeadLetter, Removal) error) error {
	return d.discard(ctx, wait, numbers, func([]*azservicebus.ReceivedMessage) int { return 1 }, each)
}

// DiscardMany is Discard for numbers of which most are wanted: it asks for several at
// a time.
func (d *DeadLetters) DiscardMany(ctx context.Context, wait time.Duration, numbers []int64, each func(DeadLetter, Removal) error) error {
	return d.discard(ctx, wait, numbers, (&pager{}).next, each)
}

func (d *DeadLetters) discard(ctx context.Context, wait time.Duration, numbers []int64, most func([]*azservicebus.ReceivedMessage) int, each func(DeadLetter, Removal) error) error {
	left := make(map[int64]bool, len(numbers))
	for _, number := range numbers {
		left[number] = true
	}
	var locks [][16]byte
	defer func() {
		for _, lock := range locks {
			// One that cannot be given back comes back when its lock ends.
			_ = d.receiver.AbandonMessage(context.WithoutCancel(ctx), &azservicebus.ReceivedMessage{LockToken: lock}, nil)
		}
	}()
	var page []*azservicebus.ReceivedMessage
	var err error
	for len(left) > 0 {
		page, err = d.receive(ctx, wait, most(page))
		if err != nil || len(page) == 0 {
			return err
		}
		for _, m := range page {
			if number := value(m.SequenceNumber); err == nil && left[number] {
				delete(left, number)
				if err = each(deadLetter(m), func() error { return d.remove(ctx, m) }); err == nil {
					continue
				}
			}
			locks = append(locks, m.LockToken)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// remove completes a message by its lock alone, with a request: the client tries again what
// the service throttles, and on the link of the message that would seem to go well (see
// receiver.Settle).
func (d *DeadLetters) remove(ctx context.Context, m *azservicebus.ReceivedMessage) error {
	if err := d.receiver.CompleteMessage(ctx, &azservicebus.ReceivedMessage{LockToken: m.LockToken}, nil); err != nil {
		return fmt.Errorf("remove dead letter %d: %w", value(m.SequenceNumber), err)
	}
	return nil
}

// receive takes the next dead letters; none once wait is over.
func (d *DeadLetters) receive(ctx context.Context, wait time.Duration, limit int) ([]*azservicebus.ReceivedMessage, error) {
	attempt, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	page, err := readable(func() ([]*azservicebus.ReceivedMessage, error) {
		return d.receiver.ReceiveMessages(attempt, limit, nil)
	})
	if err != nil && (attempt.Err() == nil || ctx.Err() != nil || errors.Is(err, errUnreadable)) {
		return nil, fmt.Errorf("receive the next dead letters, %d at most: %w", limit, err)
	}
	return page, nil
}

func deadLetter(m *azservicebus.ReceivedMessage) DeadLetter {
	return DeadLetter{Message: convert(m), Reason: value(m.DeadLetterReason), Description: value(m.DeadLetterErrorDescription)}
}
