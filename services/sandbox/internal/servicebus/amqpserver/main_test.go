package amqpserver_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"changerelay/services/sandbox/internal/servicebus/amqpserver"
	"changerelay/services/sandbox/internal/servicebus/broker"
	"changerelay/services/sandbox/internal/servicebus/entity"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// namespace is a broker behind a server, with the entities the tests use:
// queue "plain", queue "sessions", topic "changes" with session subscription "projector" and plain subscription "observer".
type namespace struct {
	addr   string
	server *amqpserver.Server
	broker *broker.Broker
}

// startNamespace serves a namespace until the test ends, and checks that nothing is left behind.
func startNamespace(tb testing.TB, change ...func(*amqpserver.Config)) *namespace {
	tb.Helper()
	b, err := broker.New(broker.Config{Namespace: "sandbox"})
	must(tb, err)
	_, err = b.CreateQueue("plain", entity.QueueProperties{LockDuration: 30 * time.Second})
	must(tb, err)
	_, err = b.CreateQueue("sessions", entity.QueueProperties{LockDuration: 30 * time.Second, RequiresSession: true})
	must(tb, err)
	_, err = b.CreateTopic("changes", entity.TopicProperties{EnablePartitioning: true, RequiresDuplicateDetection: true})
	must(tb, err)
	_, err = b.CreateSubscription("changes", "projector", entity.SubscriptionProperties{LockDuration: 30 * time.Second, RequiresSession: true})
	must(tb, err)
	_, err = b.CreateSubscription("changes", "observer", entity.SubscriptionProperties{LockDuration: 30 * time.Second})
	must(tb, err)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(tb, err)
	cfg := amqpserver.Config{Listener: listener, Broker: b, Logger: zerolog.New(zerolog.NewTestWriter(tb))}
	for _, f := range change {
		f(&cfg)
	}
	server := amqpserver.New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := b.Run(ctx); err != nil {
			tb.Errorf("run broker: %v", err)
		}
	})
	wg.Go(func() {
		if err := server.Run(ctx); err != nil {
			tb.Errorf("run server: %v", err)
		}
	})
	tb.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return &namespace{addr: listener.Addr().String(), server: server, broker: b}
}

func (n *namespace) connectionString() string {
	return fmt.Sprintf("Endpoint=sb://%s;SharedAccessKeyName=root;SharedAccessKey=secret;UseDevelopmentEmulator=true;", n.addr)
}

// client returns an official client that is closed with the test.
func (n *namespace) client(tb testing.TB) *azservicebus.Client {
	tb.Helper()
	c, err := azservicebus.NewClientFromConnectionString(n.connectionString(), &azservicebus.ClientOptions{
		RetryOptions: azservicebus.RetryOptions{MaxRetries: 1, RetryDelay: time.Millisecond, MaxRetryDelay: time.Millisecond},
	})
	must(tb, err)
	tb.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func (n *namespace) sender(tb testing.TB, c *azservicebus.Client, path string) *azservicebus.Sender {
	tb.Helper()
	s, err := c.NewSender(path, nil)
	must(tb, err)
	return s
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("unexpected error: %v", err)
	}
}

//go:fix inline
