package servicebus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

const (
	// markKey is the session of every mark: all come to the same partition of a
	// partitioned topic, which numbers them one after another.
	markKey = "change-relay-mark"
	// markYears is how far ahead a mark is scheduled. It is taken back at once;
	// one whose sender died before that is not delivered while anybody remembers.
	markYears = 20
	// partitionBits is where a number says its partition.
	partitionBits = 48
)

// ErrMarkStays is wrapped by the error of a mark that is made and could not be
// taken back.
var ErrMarkStays = errors.New("the mark stays scheduled")

// Mark leaves a mark in the topic that every later one comes after, and returns
// how many messages there are with it: of a partitioned topic, those in the
// partition of the marks. A mark is a message that is scheduled and taken back,
// which asks for nothing but the right to send, and which nobody receives. With
// ErrMarkStays the number is as good as without an error.
//
// The service numbers what a topic accepts from 1 on, without a gap:
// https://learn.microsoft.com/azure/service-bus-messaging/message-sequencing
func (t *Topic) Mark(ctx context.Context) (int64, error) {
	held, err := t.connect(ctx)
	if err != nil {
		return 0, fmt.Errorf("mark topic %q: %w", t.name, err)
	}
	defer held.users.Done()
	number, err := held.mark(ctx)
	if err != nil {
		t.mu.Lock()
		if t.link == held {
			t.drop(held)
		}
		t.mu.Unlock()
		err = fmt.Errorf("mark topic %q: %w", t.name, err)
	}
	return number & (1<<partitionBits - 1), err
}

// mark schedules a message, takes it back, and returns its number; 0 where it was
// not scheduled.
func (l *link) mark(ctx context.Context) (int64, error) {
	sender, key := l.senders[0], markKey
	numbers, err := sender.ScheduleMessages(ctx, []*azservicebus.Message{{
		SessionID: &key, PartitionKey: &key, Subject: &key,
	}}, time.Now().AddDate(markYears, 0, 0), nil)
	if err != nil {
		return 0, err
	}
	if len(numbers) != 1 {
		return 0, fmt.Errorf("the service gave %d numbers for one message", len(numbers))
	}
	if err := sender.CancelScheduledMessages(ctx, numbers, nil); err != nil {
		return numbers[0], fmt.Errorf("%w: %w", ErrMarkStays, err)
	}
	return numbers[0], nil
}
