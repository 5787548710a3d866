package servicebus_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/servicebus"
	"changerelay/services/publisher/internal/testserver"
)

// frame is at least how many bytes the first frame of a large message takes.
const frame = 32 << 10

// observed is a connection that calls once after the first large write.
type observed struct {
	net.Conn
	large *atomic.Pointer[func()]
}

func (c observed) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if len(p) >= frame {
		if call := c.large.Swap(nil); call != nil {
			(*call)()
		}
	}
	return n, err
}

// dialed dials so that a call can be had after the first large write.
func dialed(t *testing.T, connection string) (servicebus.Dial, *atomic.Pointer[func()]) {
	t.Helper()
	large := new(atomic.Pointer[func()])
	_, after, _ := strings.Cut(connection, "Endpoint=sb://")
	address, _, _ := strings.Cut(after, ";")
	return func() (*azservicebus.Client, error) {
		return azservicebus.NewClientFromConnectionString(connection, &azservicebus.ClientOptions{
			RetryOptions: azservicebus.RetryOptions{MaxRetries: -1},
			NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimSuffix(address, "/"))
				return observed{conn, large}, err
			},
		})
	}, large
}

// cuts is how many sends are cut off: the client may find out before the next
// frame is taken or after that, by chance.
const cuts = 6

// links is how many links a connection has, which take turns.
const links = 4

// cutOff sends a batch whose context ends after the first of its frames, and
// notes what was in it.
func cutOff(t *testing.T, topic *servicebus.Topic, large *atomic.Pointer[func()], count int, sent map[string][]byte) {
	t.Helper()
	var messages []contract.Message
	for range count {
		version := 1000 + len(sent)
		m := message(t, "order-1", version, randomText(version, 200_000/count))
		messages, sent[m.ID] = append(messages, m), m.Body
	}
	ctx, cancel := context.WithCancel(t.Context())
	cut := func() { cancel() }
	large.Store(&cut)
	_, _ = topic.Send(ctx, messages) // what it says is a race with the last frame
}

// TestTopic_ASendThatIsCutOffBetweenFramesSpoilsNoOther ends the context of a send
// after the first of its frames, as the end of a term does: what is sent over the
// same link after that must arrive as it is, and nothing of the message that was cut.
func TestTopic_ASendThatIsCutOffBetweenFramesSpoilsNoOther(t *testing.T) {
	t.Parallel()
	for name, count := range map[string]int{"one message": 1, "a batch": 4} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			dial, large := dialed(t, servers.ServiceBus)
			topic := servicebus.New("changes", dial)
			t.Cleanup(topic.Close)
			sendAll(t, topic, 1)
			want := map[string][]byte{} // what was cut off may come, but whole
			for range cuts {
				cutOff(t, topic, large, count, want)
				for range links {
					m := message(t, "order-1", 1000+len(want), randomText(1000+len(want), 100_000))
					want[m.ID] = m.Body
					if sent, err := topic.Send(t.Context(), []contract.Message{m}); sent != 1 || err != nil {
						t.Fatalf("Send after that = %d, %v, want it accepted", sent, err)
					}
				}
			}
			for _, m := range receive(t, servers.ServiceBus, 1+cuts*links)[1:] {
				if !bytes.Equal(m.Body, want[m.MessageID]) {
					t.Errorf("message %s has a body of %d bytes, want the one of %d that was sent", m.MessageID, len(m.Body), len(want[m.MessageID]))
				}
			}
		})
	}
}
