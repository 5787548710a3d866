package broker

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

// BenchmarkSessions sends to a partitioned topic with duplicate detection, and
// receives and completes by next-available sessions: many short sessions.
func BenchmarkSessions(b *testing.B) {
	for _, sessions := range []int{100, 50_000} {
		b.Run(fmt.Sprint(sessions, " sessions"), func(b *testing.B) {
			broker, err := New(Config{})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := broker.CreateTopic("changes", entity.TopicProperties{EnablePartitioning: true, RequiresDuplicateDetection: true, MaxSizeInMegabytes: 1 << 16}); err != nil {
				b.Fatal(err)
			}
			if _, err := broker.CreateSubscription("changes", "sub", entity.SubscriptionProperties{RequiresSession: true}); err != nil {
				b.Fatal(err)
			}
			payload := make([]byte, 500)
			names := make([]string, sessions)
			for i := range names {
				names[i] = fmt.Sprint("order-", i)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				m := &entity.Message{MessageID: fmt.Sprint("m", i), SessionID: &names[i%sessions], Payload: payload}
				if err := broker.Send(b.Context(), "changes", []*entity.Message{m}); err != nil {
					b.Fatal(err)
				}
			}
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() { work(b, broker) })
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}

// work takes sessions until there is none.
func work(b *testing.B, broker *Broker) {
	done, cancel := context.WithCancel(b.Context())
	cancel()
	for {
		r, err := broker.OpenReceiver(done, sub, ReceiverOptions{Session: &SessionFilter{Next: true}})
		if err != nil {
			return
		}
		for {
			ds, err := r.Receive(done, 100)
			if err != nil {
				break
			}
			for _, d := range ds {
				if err := r.Settle(d.LockToken, entity.Complete{}); err != nil {
					b.Error(err)
				}
			}
		}
		r.Close()
	}
}
