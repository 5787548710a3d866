package servicebus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/servicebus"
	"changerelay/services/publisher/internal/testserver"
)

// TestTopic_AMarkComesAfterAllThatWasThereAndIsNotReceived marks a topic between
// messages of several aggregates, partitioned or not.
func TestTopic_AMarkComesAfterAllThatWasThereAndIsNotReceived(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	topic := open(t, servers.ServiceBus)
	last := int64(0)
	for round, sender := range []*servicebus.Topic{topic, topic, open(t, servers.ServiceBus)} {
		count, err := sender.Mark(t.Context())
		if count <= last || err != nil || round == 0 && count != 1 {
			t.Errorf("Mark = %d, %v after %d, want 1 and then more", count, err, last)
		}
		last = count
		for n := range 100 { // some in each partition
			if _, err := topic.Send(t.Context(), []contract.Message{message(t, fmt.Sprint("order-", n), round, "x")}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if last < 4 {
		t.Errorf("the third mark is the %d., want the messages counted", last)
	}
	receive(t, servers.ServiceBus, 300)
}

// keeping is a connection that is lost when a scheduled message is to be taken back.
type keeping struct{ net.Conn }

func (c keeping) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("cancel-scheduled-message")) {
		return 0, errors.Join(net.ErrClosed, c.Close())
	}
	return c.Conn.Write(p)
}

// TestTopic_AMarkThatCannotBeTakenBackIsCounted loses the connection between mark and
// cancellation: that the mark was the first must not be lost with it.
func TestTopic_AMarkThatCannotBeTakenBackIsCounted(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	_, after, _ := strings.Cut(servers.ServiceBus, "Endpoint=sb://")
	address, _, _ := strings.Cut(after, ";")
	topic := servicebus.New(testserver.Topic, func() (*azservicebus.Client, error) {
		return azservicebus.NewClientFromConnectionString(servers.ServiceBus, &azservicebus.ClientOptions{
			RetryOptions: azservicebus.RetryOptions{MaxRetries: -1},
			NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimSuffix(address, "/"))
				return keeping{conn}, err
			},
		})
	})
	t.Cleanup(topic.Close)
	if count, err := topic.Mark(t.Context()); count != 1 || !errors.Is(err, servicebus.ErrMarkStays) {
		t.Errorf("Mark = %d, %v, want 1 and ErrMarkStays", count, err)
	}
	if count, err := open(t, servers.ServiceBus).Mark(t.Context()); count != 2 || err != nil {
		t.Errorf("the next Mark = %d, %v, want 2", count, err)
	}
}
