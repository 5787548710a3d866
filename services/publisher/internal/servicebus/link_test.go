package servicebus_test

import (
	"fmt"
	"testing"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/servicebus"
	"changerelay/services/publisher/internal/testserver"
)

// TestTopic_ALinkThatEndedForASizeMakesNoLaterMessageTooLarge has the service end
// all links, as it does after a message beyond its limit.
func TestTopic_ALinkThatEndedForASizeMakesNoLaterMessageTooLarge(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	topic := open(t, servers.ServiceBus)
	sendAll(t, topic, 1)
	testserver.Fault(t, servers, `{"kind":"servicebus.detach","path":"changes","condition":"amqp:link:message-size-exceeded"}`)
	const count = 40 // over all links, alone and in batches
	for n := 2; n <= count; n += 2 {
		sendAll(t, topic, n)
		sendAll(t, topic, n+1, n+2)
		n++
	}
	if n, err := topic.Send(t.Context(), []contract.Message{message(t, "order-1", 99, randomText(3, 2<<20))}); n != 0 {
		t.Errorf("Send of a large message = %d, want 0", n)
	} else {
		wantClass(t, err, relay.TooLarge)
	}
	sendAll(t, topic, 100)
}

// TestTopic_ALinkThatEndedAsBusyIsReplaced has the service end all links with
// server-busy, which the SDK takes for an answer that calls for no new link.
func TestTopic_ALinkThatEndedAsBusyIsReplaced(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	topic := open(t, servers.ServiceBus)
	sendAll(t, topic, 1)
	testserver.Fault(t, servers, `{"kind":"servicebus.detach","path":"changes","condition":"com.microsoft:server-busy"}`)
	_, err := topic.Send(t.Context(), []contract.Message{message(t, "order-1", 2, "x")})
	wantClass(t, err, relay.Throttled)
	for n := 2; n <= 20; n++ {
		sendAll(t, topic, n)
	}
}

// sendAll sends small messages, which must be accepted at once.
func sendAll(t *testing.T, topic *servicebus.Topic, versions ...int) {
	t.Helper()
	var messages []contract.Message
	for _, version := range versions {
		messages = append(messages, message(t, "order-1", version, fmt.Sprint("small ", version)))
	}
	if n, err := topic.Send(t.Context(), messages); n != len(messages) || err != nil {
		t.Fatalf("Send of %v = %d, %v, want all", versions, n, err)
	}
}
