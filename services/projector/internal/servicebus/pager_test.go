package servicebus

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// weighed is a dead-letter queue of bodies of some sizes, which notes how many were
// asked for at once.
type weighed struct {
	deadReceiver

	sizes  []int
	asked  []int
	number int64
}

func (q *weighed) PeekMessages(_ context.Context, most int, _ *azservicebus.PeekMessagesOptions) (page []*azservicebus.ReceivedMessage, err error) {
	q.asked = append(q.asked, most)
	n := min(most, len(q.sizes))
	for _, size := range q.sizes[:n] {
		q.number++
		number, body := q.number, make([]byte, size)
		page = append(page, &azservicebus.ReceivedMessage{SequenceNumber: &number, Body: body, RawAMQPMessage: &azservicebus.AMQPAnnotatedMessage{Body: azservicebus.AMQPAnnotatedMessageBody{Data: [][]byte{body}}}})
	}
	q.sizes = q.sizes[n:]
	return page, nil
}

func (q *weighed) ReceiveMessages(ctx context.Context, most int, _ *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error) {
	return q.PeekMessages(ctx, most, nil)
}

func (q *weighed) CompleteMessage(context.Context, *azservicebus.ReceivedMessage, *azservicebus.CompleteMessageOptions) error {
	return nil
}

// Dead letters are asked for by what they weigh, and few at first.
func TestDeadLetters_AreAskedForByWhatTheyWeigh(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for name, tt := range map[string]struct{ sizes, asked []int }{
		"none":                               {nil, []int{1}},
		"small ones":                         {slices.Repeat([]int{100}, 60), []int{1, 2, 4, 8, 16, 20, 20, 20}},
		"large ones":                         {slices.Repeat([]int{mib}, 12), []int{1, 2, 4, 4, 4, 4}},
		"each more than there is":            {slices.Repeat([]int{5 * mib}, 3), []int{1, 1, 1, 1}},
		"small ones after one that is large": {append([]int{3 * mib}, slices.Repeat([]int{100}, 6)...), []int{1, 1, 2, 4, 8}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for use, of := range map[string]func(d *DeadLetters, each func(DeadLetter) error) error{
				"peek": func(d *DeadLetters, each func(DeadLetter) error) error { return d.Peek(t.Context(), each) },
				"discard": func(d *DeadLetters, each func(DeadLetter) error) error {
					numbers := []int64{int64(len(tt.sizes)) + 1} // which never comes
					for n := range tt.sizes {
						numbers = append(numbers, int64(n)+1)
					}
					return d.DiscardMany(t.Context(), time.Hour, numbers, func(letter DeadLetter, remove Removal) error {
						return errors.Join(remove(), each(letter))
					})
				},
			} {
				queue, got := &weighed{sizes: tt.sizes}, 0
				err := of(&DeadLetters{receiver: queue}, func(DeadLetter) error { got++; return nil })
				if err != nil || got != len(tt.sizes) || !slices.Equal(queue.asked, tt.asked) {
					t.Errorf("%s: got %d, %v, asked for %v; want all %d, asked for %v", use, got, err, queue.asked, len(tt.sizes), tt.asked)
				}
			}
		})
	}
}
