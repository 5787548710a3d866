package servicebus

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// deadPage is how many messages are asked for at once. Each comes with its body.
const deadPage = 20

// OpenDeadLetters opens the dead-letter queue of the configured subscription.
func OpenDeadLetters(cfg Config) (*DeadLetters, error) {
	client, err := (&Subscription{cfg: cfg, log: zerolog.Nop()}).dial(func() {})
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

// Peek calls each for the dead letters there are, without taking their locks.
func (d *DeadLetters) Peek(ctx context.Context, each func(DeadLetter) error) error {
	for {
		// The client goes on behind the last message that it has peeked at.
		page, err := d.receiver.PeekMessages(ctx, deadPage, nil)
		if e, ok := errors.AsType[*azservicebus.Error](err); ok && e.Code == azservicebus.CodeNotFound {
			return fmt.Errorf("peek at dead letters: %w: %w", ErrNoEntity, err)
		}
		if err != nil {
			return fmt.Errorf("peek at dead letters: %w", err)
		}
		if len(page) == 0 {
			return nil
		}
		for _, m := range page {
			if err := each(deadLetter(m)); err != nil {
				return err
			}
		}
	}
}

// DiscardAll removes every dead letter, and calls each for those that it has
// removed, until none comes for wait.
func (d *DeadLetters) DiscardAll(ctx context.Context, wait time.Duration, each func(DeadLetter) error) error {
	for {
		page, err := d.receive(ctx, wait, deadPage)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, m := range page {
			if err := d.remove(ctx, m, each); err != nil {
				return err
			}
		}
	}
}

// At returns the dead letter with a number, without taking its lock; false where
// there is none.
func (d *DeadLetters) At(ctx context.Context, number int64) (DeadLetter, bool, error) {
	page, err := d.receiver.PeekMessages(ctx, 1, &azservicebus.PeekMessagesOptions{FromSequenceNumber: &number})
	if err != nil {
		return DeadLetter{}, false, fmt.Errorf("peek at dead letter %d: %w", number, err)
	}
	if len(page) == 0 || value(page[0].SequenceNumber) != number {
		return DeadLetter{}, false, nil
	}
	return deadLetter(page[0]), true, nil
}

// Discard removes dead letters by their numbers, and calls each for them. Those
// before them are locked meanwhile and given back; of each only the lock is kept. It
// asks for one at a time: credit that is left over would take back what is given back.
func (d *DeadLetters) Discard(ctx context.Context, wait time.Duration, numbers []int64, each func(DeadLetter) error) error {
	left := slices.Clone(numbers)
	var locks [][16]byte
	defer func() {
		for _, lock := range locks {
			// One that cannot be given back comes back when its lock ends.
			_ = d.receiver.AbandonMessage(context.WithoutCancel(ctx), &azservicebus.ReceivedMessage{LockToken: lock}, nil)
		}
	}()
	for len(left) > 0 {
		page, err := d.receive(ctx, wait, 1)
		if err != nil || len(page) == 0 {
			return err
		}
		place := slices.Index(left, value(page[0].SequenceNumber))
		if place < 0 {
			locks = append(locks, page[0].LockToken)
			continue
		}
		if err := d.remove(ctx, page[0], each); err != nil {
			return err
		}
		left = slices.Delete(left, place, place+1)
	}
	return nil
}

func (d *DeadLetters) remove(ctx context.Context, m *azservicebus.ReceivedMessage, each func(DeadLetter) error) error {
	if err := d.receiver.CompleteMessage(ctx, m, nil); err != nil {
		return fmt.Errorf("remove dead letter %d: %w", value(m.SequenceNumber), err)
	}
	return each(deadLetter(m))
}

// receive takes the next dead letters; none once wait is over.
func (d *DeadLetters) receive(ctx context.Context, wait time.Duration, limit int) ([]*azservicebus.ReceivedMessage, error) {
	attempt, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	page, err := d.receiver.ReceiveMessages(attempt, limit, nil)
	if err != nil && (attempt.Err() == nil || ctx.Err() != nil) {
		return nil, fmt.Errorf("receive dead letters: %w", err)
	}
	return page, nil
}

func deadLetter(m *azservicebus.ReceivedMessage) DeadLetter {
	return DeadLetter{Message: convert(m), Reason: value(m.DeadLetterReason), Description: value(m.DeadLetterErrorDescription)}
}
