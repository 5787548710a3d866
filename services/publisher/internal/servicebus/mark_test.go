package servicebus_test

import (
	"fmt"
	"testing"

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
