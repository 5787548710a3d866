package servicebus_test

import (
	"context"
	"net"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/services/projector/internal/namespace"
	"changerelay/services/projector/internal/sandboxtest"
)

// Peeked messages come within an answer, and are decoded one by one: one that go-amqp would
// panic at is an error.
func TestPeek_AMessageThatCannotBeDecodedIsAnError(t *testing.T) {
	t.Parallel()
	const topic = "peeked"
	sandboxtest.SendWithSections(t, servers, topic, message("1", "a"), []byte{0, 0x53, 0x78, 0xc1, 3, 2, 0x45, 0x40})
	access, err := namespace.Read(servers.ServiceBus)
	if err != nil {
		t.Fatal(err)
	}
	client, err := azservicebus.NewClientFromConnectionString(servers.ServiceBus, &azservicebus.ClientOptions{
		NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			return access.Dial(ctx, nil)
		},
		RetryOptions: azservicebus.RetryOptions{MaxRetries: -1},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close(context.WithoutCancel(t.Context())) }()
	r, err := client.AcceptSessionForSubscription(t.Context(), topic, "projector", "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close(context.WithoutCancel(t.Context())) }()
	if peeked, err := r.PeekMessages(t.Context(), 1, nil); err == nil {
		t.Errorf("peek: got %d messages, want an error", len(peeked))
	}
}
