package servicebus

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/testserver"
)

func TestTopic_ALinkThatRefusesWhatAnotherTakesIsReplacedOnce(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	topic := New(testserver.Topic, WithConnectionString(servers.ServiceBus, Options{}))
	t.Cleanup(topic.Close)
	sent := contract.Message{ID: "1", SessionID: "order-1", PartitionKey: "order-1", Body: []byte("{}")}
	sendRound := func() [links]*azservicebus.Sender {
		var after [links]*azservicebus.Sender
		for range links {
			if n, err := topic.Send(t.Context(), []contract.Message{sent}); n != 1 || err != nil {
				t.Fatalf("Send = %d, %v, want 1", n, err)
			}
		}
		for i := range after {
			after[i] = topic.link.senders[i]
		}
		return after
	}
	before := sendRound()
	testserver.Fault(t, servers, `{"kind":"servicebus.detach","path":"changes","condition":"amqp:link:message-size-exceeded"}`)
	replaced := sendRound()
	for i := range before {
		if replaced[i] == before[i] {
			t.Errorf("link %d was not replaced", i)
		}
	}
	if again := sendRound(); again != replaced {
		t.Error("links were replaced again that take messages")
	}
}
