package broker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

// standard is what the vendor documents for its Standard tier.
var standard = Allowance{
	CreditsPerSecond: 1000, Costs: Costs{Send: 1, Receive: 1, Peek: 1, Management: 10, Filter: 1}, BusyWait: 2 * time.Second,
}

func messages(n int) []*entity.Message {
	out := make([]*entity.Message, n)
	for i := range out {
		out[i] = &entity.Message{Payload: []byte("x")}
	}
	return out
}

func wantBusy(t *testing.T, err error, text string) {
	t.Helper()
	var refused *entity.Error
	if !errors.As(err, &refused) || refused.Condition != entity.ConditionServerBusy || !strings.Contains(refused.Description, text) {
		t.Errorf("got error %v, want %s with %q", err, entity.ConditionServerBusy, text)
	}
}

// sentUntilRefused sends one at a time until the namespace refuses.
func sentUntilRefused(t *testing.T, b *Broker, path string) (n int) {
	t.Helper()
	for {
		if err := b.Send(t.Context(), path, messages(1)); err != nil {
			wantBusy(t, err, "Error code : 50009. Please wait 2 seconds and try again.")
			return n
		}
		n++
	}
}

func TestAllowance_RefusesWhatIsBeyondTheCreditsUntilTheNextSecond(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *Broker) {
		_, err := b.CreateQueue("q", entity.QueueProperties{})
		must(t, err)
		b.Allow(standard)
		for second := range 3 {
			if got := sentUntilRefused(t, b, "q"); got != 1000 {
				t.Errorf("got %d sends in second %d, want 1000", got, second)
			}
			time.Sleep(999 * time.Millisecond)
			wantBusy(t, b.Send(t.Context(), "q", messages(1)), "50009")
			time.Sleep(time.Millisecond)
		}
	})
}

func TestAllowance_ChargesWhatTheVendorSays(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		do   func(t *testing.T, b *Broker)
		want int64
	}{
		"a batch, for each message":                     {func(t *testing.T, b *Broker) { must(t, b.Send(t.Context(), "q", messages(7))) }, 7},
		"a send to a topic, for each rule as well":      {func(t *testing.T, b *Broker) { must(t, b.Send(t.Context(), "t", messages(2))) }, 2 * (1 + 3)},
		"a request to the management API":               {func(t *testing.T, b *Broker) { must(t, b.Manage()) }, 10},
		"a receive and its completion, for the message": {receiveOne, 1},
		"a look, for each message": {func(t *testing.T, b *Broker) {
			_, err := b.Peek("full", 0, 3, nil)
			must(t, err)
		}, 3},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *Broker) {
				namespaceOf3Rules(t, b)
				b.Allow(standard)
				test.do(t, b)
				if got := 1000 - b.purse.credits; got != test.want {
					t.Errorf("got %d credits taken, want %d", got, test.want)
				}
			})
		})
	}
}

// namespaceOf3Rules has an empty queue, a queue with 5 messages, and a topic whose subscriptions have three rules.
func namespaceOf3Rules(t *testing.T, b *Broker) {
	t.Helper()
	for _, q := range []string{"q", "full"} {
		_, err := b.CreateQueue(q, entity.QueueProperties{})
		must(t, err)
	}
	must(t, b.Send(t.Context(), "full", messages(5)))
	_, err := b.CreateTopic("t", entity.TopicProperties{})
	must(t, err)
	_, err = b.CreateSubscription("t", "one", entity.SubscriptionProperties{})
	must(t, err)
	_, err = b.CreateSubscription("t", "two", entity.SubscriptionProperties{}, entity.Rule{Name: "a"}, entity.Rule{Name: "b"})
	must(t, err)
}

func receiveOne(t *testing.T, b *Broker) {
	r, err := b.OpenReceiver(t.Context(), "full", ReceiverOptions{})
	must(t, err)
	got, err := r.Receive(t.Context(), 1)
	must(t, err)
	must(t, r.Settle(got[0].LockToken, entity.Complete{}))
	r.Close()
}

func TestAllowance_ABatchBeyondTheCreditsIsPaidByTheSecondsToCome(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *Broker) {
		_, err := b.CreateQueue("q", entity.QueueProperties{})
		must(t, err)
		b.Allow(standard)
		must(t, b.Send(t.Context(), "q", messages(2500)))
		time.Sleep(time.Second)
		wantBusy(t, b.Send(t.Context(), "q", messages(1)), "50009")
		time.Sleep(time.Second)
		if got := sentUntilRefused(t, b, "q"); got != 500 {
			t.Errorf("got %d sends, want the 500 that are left", got)
		}
	})
}

func TestAllowance_ReceivesWaitForTheNextSecond(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *Broker) {
		_, err := b.CreateQueue("q", entity.QueueProperties{})
		must(t, err)
		must(t, b.Send(t.Context(), "q", messages(2500)))
		r, err := b.OpenReceiver(t.Context(), "q", ReceiverOptions{Mode: ReceiveAndDelete})
		must(t, err)
		defer r.Close()
		b.Allow(standard)
		began := time.Now()
		for got := 0; got < 2500; {
			batch, err := r.Receive(t.Context(), 300)
			must(t, err)
			got += len(batch)
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("got %s for 2500 messages at 1000 a second, want 2s", took)
		}
	})
}

func TestAllowance_NewLinksAndSettlementsAreRefusedWhereTheyCost(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *Broker) {
		_, err := b.CreateQueue("q", entity.QueueProperties{})
		must(t, err)
		must(t, b.Send(t.Context(), "q", messages(3)))
		r, err := b.OpenReceiver(t.Context(), "q", ReceiverOptions{})
		must(t, err)
		defer r.Close()
		got, err := r.Receive(t.Context(), 3)
		must(t, err)
		b.Allow(Allowance{CreditsPerSecond: 2, Costs: Costs{Settle: 1}})
		must(t, r.Settle(got[0].LockToken, entity.Complete{}))
		must(t, r.Settle(got[1].LockToken, entity.Complete{}))
		wantBusy(t, r.Settle(got[2].LockToken, entity.Complete{}), "50009")
		_, err = b.OpenReceiver(t.Context(), "q", ReceiverOptions{})
		wantBusy(t, err, "50009")
		_, err = b.MaxMessageBytes("q")
		wantBusy(t, err, "50009")
		wantBusy(t, b.Manage(), "50009")
		time.Sleep(time.Second)
		must(t, r.Settle(got[2].LockToken, entity.Complete{}))
	})
}

func TestAllowance_ThroughputQueuesAndThenRefuses(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *Broker) {
		_, err := b.CreateQueue("q", entity.QueueProperties{})
		must(t, err)
		b.Allow(Allowance{MessagesPerSecond: 100, QueueTime: 450 * time.Millisecond, BusyWait: 4 * time.Second})
		began := time.Now()
		for range 101 { // one sender is never refused, only held up
			must(t, b.Send(t.Context(), "q", messages(1)))
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("got %s for 101 messages, want 1s", took)
		}
		refused := 0
		results := make(chan error)
		for range 100 {
			go func() { results <- b.Send(context.WithoutCancel(t.Context()), "q", messages(1)) }()
		}
		for range 100 {
			if err := <-results; err != nil {
				wantBusy(t, err, "Error code : 50002. Sub error : 102. Please wait 4 seconds")
				refused++
			}
		}
		if refused != 55 {
			t.Errorf("got %d of 100 refused at once, want the 55 that would wait for more than 450ms", refused)
		}
	})
}

func TestAllowance_BytesBoundThroughputToo(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *Broker) {
		_, err := b.CreateQueue("q", entity.QueueProperties{})
		must(t, err)
		b.Allow(Allowance{BytesPerSecond: 1000, QueueTime: time.Hour})
		began := time.Now()
		for range 11 {
			must(t, b.Send(t.Context(), "q", []*entity.Message{{Payload: make([]byte, 200)}}))
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("got %s for 2200 bytes, want 2s", took)
		}
	})
}

func TestAllowance_BoundsSizesAndEntities(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *Broker) {
		namespaceOf3Rules(t, b)
		b.Allow(Allowance{MaxMessageBytes: 10, MaxBatchBytes: 25, MaxBatchMessages: 4, MaxEntities: 3, MaxSubscriptions: 2})
		ten := &entity.Message{Payload: make([]byte, 10)}
		must(t, b.Send(t.Context(), "q", []*entity.Message{ten, ten}))
		limit, err := b.MaxMessageBytes("q")
		must(t, err)
		if limit != 10 {
			t.Errorf("got a limit of %d, want 10", limit)
		}
		for what, err := range map[string]error{
			"message": b.Send(t.Context(), "q", []*entity.Message{{Payload: make([]byte, 11)}}),
			"batch":   b.Send(t.Context(), "q", []*entity.Message{ten, ten, ten}),
			"count":   b.Send(t.Context(), "q", messages(5)),
			"entity":  second(b.CreateQueue("another", entity.QueueProperties{})),
			"topic":   second(b.CreateTopic("another", entity.TopicProperties{})),
			"child":   second(b.CreateSubscription("t", "three", entity.SubscriptionProperties{})),
		} {
			if err == nil {
				t.Errorf("got no error for a %s beyond the limit", what)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }
