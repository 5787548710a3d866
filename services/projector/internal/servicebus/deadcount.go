package servicebus

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// countPage is how many dead letters a count asks for at once. Each comes with its body.
const countPage = 20

// countBytes bounds the bodies that one count may bring.
const countBytes = 8 << 20

// CountDeadLetters counts the subscription's dead letters by reason, from the
// oldest on, without taking their locks. It ends after most of them, or when it
// has brought 8 MiB; then whole is false, and there may be more.
func (s *Subscription) CountDeadLetters(ctx context.Context, most int) (byReason map[string]int, whole bool, err error) {
	client, err := s.conns[0].current()
	if err != nil {
		return nil, false, err
	}
	receiver, err := client.NewReceiverForSubscription(s.cfg.Topic, s.cfg.Subscription,
		&azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	if err != nil {
		return nil, false, fmt.Errorf("open the dead letters of subscription %q: %w", s.cfg.Subscription, err)
	}
	defer func() { err = errors.Join(err, receiver.Close(context.WithoutCancel(ctx))) }()
	if byReason, whole, err = countByReason(ctx, receiver, most); err != nil {
		return nil, false, fmt.Errorf("peek at the dead letters of subscription %q: %w", s.cfg.Subscription, err)
	}
	return byReason, whole, nil
}

func countByReason(ctx context.Context, receiver deadReceiver, most int) (byReason map[string]int, whole bool, err error) {
	byReason = map[string]int{}
	counted, bytes, last := 0, 0, int64(0)
	for counted < most && bytes < countBytes {
		page, err := readable(func() ([]*azservicebus.ReceivedMessage, error) {
			return receiver.PeekMessages(ctx, min(countPage, most-counted), nil)
		})
		if err != nil {
			return nil, false, fmt.Errorf("the next %d after number %d: %w", countPage, last, err)
		}
		if len(page) == 0 {
			return byReason, true, nil
		}
		for _, m := range page {
			counted++
			bytes += len(m.Body)
			last = value(m.SequenceNumber)
			byReason[value(m.DeadLetterReason)]++
		}
	}
	return byReason, false, nil
}
