package amqpserver_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/rs/zerolog"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/amqpserver"
	"changerelay/services/sandbox/internal/servicebus/entity"
)

func quiet(c *amqpserver.Config) { c.Logger = zerolog.Nop() }

// payload is the size of an ordinary event.
var payload = bytes.Repeat([]byte("x"), 500)

// BenchmarkBatchesThroughAQueue sends batches of 100 and receives and completes them, all with the official client in the
// same process: an operation is one message.
func BenchmarkBatchesThroughAQueue(b *testing.B) {
	ns := startNamespace(b, quiet)
	const size = 100
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.SetBytes(int64(len(payload)))
	wg.Go(func() { sendBatches(ctx, b, ns, b.N, size) })
	r, err := ns.client(b).NewReceiverForQueue("plain", &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModePeekLock})
	must(b, err)
	for got := 0; got < b.N; {
		messages, err := r.ReceiveMessages(ctx, min(size, b.N-got), nil)
		must(b, err)
		got += len(messages)
		completeAll(ctx, b, r, messages)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}

func sendBatches(ctx context.Context, b *testing.B, ns *namespace, n, size int) {
	b.Helper()
	sender := ns.sender(b, ns.client(b), "plain") //nolint:contextcheck // the client outlives the sending
	for sent := 0; sent < n; {
		batch, err := sender.NewMessageBatch(ctx, nil)
		must(b, err)
		for range min(size, n-sent) {
			must(b, batch.AddMessage(&azservicebus.Message{Body: payload}, nil))
		}
		must(b, sender.SendMessageBatch(ctx, batch, nil))
		sent += int(batch.NumMessages())
	}
}

type completer interface {
	CompleteMessage(ctx context.Context, m *azservicebus.ReceivedMessage, o *azservicebus.CompleteMessageOptions) error
}

// completeAll has all settlements of a batch in flight at once, as a fast consumer does.
func completeAll(ctx context.Context, b *testing.B, r completer, messages []*azservicebus.ReceivedMessage) {
	b.Helper()
	var wg sync.WaitGroup
	for _, m := range messages {
		wg.Go(func() {
			if err := r.CompleteMessage(ctx, m, nil); err != nil {
				b.Errorf("complete: %v", err)
			}
		})
	}
	wg.Wait()
}

// BenchmarkSend sends batches of 100 messages without receiving them.
func BenchmarkSend(b *testing.B) {
	ns := startNamespace(b, quiet)
	b.SetBytes(int64(len(payload)))
	sendBatches(b.Context(), b, ns, b.N, 100)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}

// BenchmarkSessions receives and completes messages of long sessions with 8 receivers, as projectors do: an operation
// is one message.
func BenchmarkSessions(b *testing.B) {
	const receivers = 8
	ns := startNamespace(b, quiet)
	each := b.N/receivers + 1
	for i := range receivers {
		fillSession(b, ns, fmt.Sprint(i), each)
	}
	b.SetBytes(int64(len(payload)))
	b.ResetTimer()
	var wg sync.WaitGroup
	for i := range receivers {
		r, err := ns.client(b).AcceptSessionForQueue(b.Context(), "sessions", fmt.Sprint(i), nil)
		must(b, err)
		wg.Go(func() {
			for left := each; left > 0; {
				messages, err := r.ReceiveMessages(b.Context(), min(left, 100), nil)
				if err != nil {
					b.Errorf("receive: %v", err)
					return
				}
				completeAll(b.Context(), b, r, messages)
				left -= len(messages)
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}

func fillSession(b *testing.B, ns *namespace, id string, n int) {
	b.Helper()
	messages := make([]*entity.Message, n)
	for i := range messages {
		messages[i] = &entity.Message{SessionID: &id, Payload: amqp.AppendBodyValue(nil, payload)}
	}
	must(b, ns.broker.Send(b.Context(), "sessions", messages))
}

// BenchmarkAcceptNextSession accepts, empties and closes short sessions with 16 workers: an operation is one session.
func BenchmarkAcceptNextSession(b *testing.B) {
	ns := startNamespace(b, quiet)
	sender := ns.sender(b, ns.client(b), "sessions")
	b.StopTimer()
	for i := 0; i < b.N; {
		batch, err := sender.NewMessageBatch(b.Context(), nil)
		must(b, err)
		for ; i < b.N && batch.NumMessages() < 200; i++ {
			must(b, batch.AddMessage(&azservicebus.Message{Body: payload, SessionID: new(fmt.Sprint(i))}, nil))
		}
		must(b, sender.SendMessageBatch(b.Context(), batch, nil))
	}
	c := ns.client(b)
	b.StartTimer()
	var wg sync.WaitGroup
	var taken atomic.Int64
	for range 16 {
		wg.Go(func() {
			for taken.Add(1) <= int64(b.N) {
				r, err := c.AcceptNextSessionForQueue(b.Context(), "sessions", nil)
				if err != nil {
					b.Errorf("accept: %v", err)
					return
				}
				messages, err := r.ReceiveMessages(b.Context(), 1, nil)
				if err != nil {
					b.Errorf("receive: %v", err)
					return
				}
				completeAll(b.Context(), b, r, messages)
				_ = r.Close(b.Context())
			}
		})
	}
	wg.Wait()
}
