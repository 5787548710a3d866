package servicebus

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"
	"weak"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// deadQueue is a dead-letter queue that counts how many of the bodies that it has
// given out are still in memory.
type deadQueue struct {
	deadReceiver

	letters, next int
	out           []weak.Pointer[byte]
	most          int
	completed     []int
	abandoned     []int
}

func (q *deadQueue) ReceiveMessages(ctx context.Context, _ int, _ *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error) {
	if q.next == q.letters {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	q.next++
	number, body := int64(q.next), make([]byte, 64<<10)
	m := &azservicebus.ReceivedMessage{
		SequenceNumber: &number, Body: body,
		RawAMQPMessage: &azservicebus.AMQPAnnotatedMessage{Body: azservicebus.AMQPAnnotatedMessageBody{Data: [][]byte{body}}},
	}
	binary.BigEndian.PutUint64(m.LockToken[:], uint64(q.next))
	q.out = append(q.out, weak.Make(&body[0]))
	runtime.GC()
	now := 0
	for _, body := range q.out {
		if body.Value() != nil {
			now++
		}
	}
	q.most = max(q.most, now)
	return []*azservicebus.ReceivedMessage{m}, nil
}

// lock is the number of the letter that a message's lock token is of.
func lock(m *azservicebus.ReceivedMessage) int { return int(binary.BigEndian.Uint64(m.LockToken[:])) }

func (q *deadQueue) CompleteMessage(_ context.Context, m *azservicebus.ReceivedMessage, _ *azservicebus.CompleteMessageOptions) error {
	q.completed = append(q.completed, lock(m))
	return nil
}

func (q *deadQueue) AbandonMessage(_ context.Context, m *azservicebus.ReceivedMessage, _ *azservicebus.AbandonMessageOptions) error {
	q.abandoned = append(q.abandoned, lock(m))
	return errors.New("the lock has ended")
}

// However many dead letters are before the one that is removed, only their locks are
// kept, and each is given back.
func TestDiscard_KeepsTheLocksOfWhatItPassesAndNotTheBodies(t *testing.T) {
	t.Parallel()
	const letters = 40
	queue := &deadQueue{letters: letters}
	var removed []int64
	err := (&DeadLetters{receiver: queue}).Discard(t.Context(), time.Hour, []int64{20, letters}, func(d DeadLetter, remove Removal) error {
		removed = append(removed, d.SequenceNumber)
		return remove()
	})
	if err != nil || !slices.Equal(removed, []int64{20, letters}) || !slices.Equal(queue.completed, []int{20, letters}) {
		t.Fatalf("removed %v and %v, %v; want the two", removed, queue.completed, err)
	}
	var passed []int
	for n := range letters {
		if n+1 != 20 && n+1 != letters {
			passed = append(passed, n+1)
		}
	}
	if !slices.Equal(queue.abandoned, passed) {
		t.Errorf("given back: got %v, want every other one", queue.abandoned)
	}
	// One is received while the last one may not be collected yet.
	if queue.most > 2 {
		t.Errorf("%d bodies of %d were in memory at once, want one, or two while the next one comes", queue.most, letters)
	}
}
