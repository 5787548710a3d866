package servicebus

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// oddQueue is a dead-letter queue with a message that the client panics at, by its number.
type oddQueue struct {
	deadReceiver

	letters, odd, peeked int64
}

func (q *oddQueue) PeekMessages(_ context.Context, most int, o *azservicebus.PeekMessagesOptions) (page []*azservicebus.ReceivedMessage, _ error) {
	next := q.peeked + 1
	if o != nil {
		next = *o.FromSequenceNumber
	}
	for ; next <= q.letters && len(page) < most; next++ {
		var reason any = "Bad"
		if next == q.odd {
			reason = next
		}
		number, text := next, reason.(string)
		page = append(page, &azservicebus.ReceivedMessage{SequenceNumber: &number, DeadLetterReason: &text})
	}
	if o == nil {
		q.peeked += int64(len(page))
	}
	return page, nil
}

func (q *oddQueue) ReceiveMessages(ctx context.Context, most int, _ *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error) {
	return q.PeekMessages(ctx, most, nil)
}

func (q *oddQueue) AbandonMessage(context.Context, *azservicebus.ReceivedMessage, *azservicebus.AbandonMessageOptions) error {
	return nil
}

// A dead letter that the client panics at is an error that says where it is and what to do,
// and what stands before it is read.
func TestDeadLetters_OneThatTheClientCannotReadIsAnError(t *testing.T) {
	t.Parallel()
	says := func(what string, err error, where string) {
		t.Helper()
		if !errors.Is(err, errUnreadable) || !strings.Contains(err.Error(), where) || !strings.Contains(err.Error(), "runbook") {
			t.Errorf("%s: got %v, want that the client cannot read %q, and what to do", what, err, where)
		}
	}
	d := &DeadLetters{receiver: &oddQueue{letters: 30, odd: 17}}
	var read []int64
	note := func(d DeadLetter) error { read = append(read, d.SequenceNumber); return nil }
	says("peek", d.Peek(t.Context(), note), "the first dead letter after number 16:")
	if len(read) != 16 || !slices.IsSorted(read) {
		t.Errorf("peeked at %v, want the 16 before it", read)
	}
	_, _, err := d.At(t.Context(), 17)
	says("at", err, "dead letter 17:")
	d = &DeadLetters{receiver: &oddQueue{letters: 30, odd: 17}}
	says("discard", d.Discard(t.Context(), time.Hour, []int64{18}, nil), "the next dead letters, 1 at most:")
	_, _, err = countByReason(t.Context(), &oddQueue{letters: 30, odd: 27}, 100)
	says("count", err, "the next 20 after number 20:")
}
