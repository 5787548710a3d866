package servicebus_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/servicebus"
	"changerelay/services/publisher/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func TestTopic_AMessageArrivesAsItWasMeant(t *testing.T) {
	t.Parallel()
	connection := testserver.Start(t).ServiceBus
	topic := open(t, connection)
	want := message(t, "order-1", 1, strings.Repeat("data ", 100))
	if !strings.Contains(want.ContentEncoding, "gzip") {
		t.Fatalf("the message is not compressed: %+v", want)
	}
	if n, err := topic.Send(t.Context(), []contract.Message{want}); n != 1 || err != nil {
		t.Fatalf("Send = %d, %v, want 1", n, err)
	}
	got := receive(t, connection, 1)[0]
	if got.MessageID != want.ID || *got.SessionID != want.SessionID || *got.PartitionKey != want.PartitionKey ||
		*got.Subject != want.Subject || *got.ContentType != want.ContentType {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := *got.RawAMQPMessage.Properties.ContentEncoding; got != want.ContentEncoding {
		t.Errorf("content encoding is %q, want %q", got, want.ContentEncoding)
	}
	if !bytes.Equal(got.Body, want.Body) {
		t.Errorf("body is %q, want %q", got.Body, want.Body)
	}
	for name, value := range want.Properties {
		if got.ApplicationProperties[name] != value {
			t.Errorf("property %s is %v, want %v", name, got.ApplicationProperties[name], value)
		}
	}
}

// TestTopic_ADeletionWithoutDataHasNoContentType looks at what arrives: absent is not empty.
func TestTopic_ADeletionWithoutDataHasNoContentType(t *testing.T) {
	t.Parallel()
	connection := testserver.Start(t).ServiceBus
	topic := open(t, connection)
	deletion := message(t, "order-1", 1, "data")
	deletion.ContentType, deletion.ContentEncoding, deletion.Body = "", "", nil
	if n, err := topic.Send(t.Context(), []contract.Message{deletion}); n != 1 || err != nil {
		t.Fatalf("Send = %d, %v, want 1", n, err)
	}
	got := receive(t, connection, 1)[0]
	if properties := got.RawAMQPMessage.Properties; properties.ContentType != nil || properties.ContentEncoding != nil {
		t.Errorf("it has %+v, want neither a content type nor an encoding", properties)
	}
	if len(got.Body) != 0 {
		t.Errorf("body is %q, want none", got.Body)
	}
}

func TestTopic_ABatchKeepsItsOrderHoweverManySendsItTakes(t *testing.T) {
	t.Parallel()
	connection := testserver.Start(t).ServiceBus
	topic := open(t, connection)
	const count = 120
	var messages []contract.Message
	for n := range count { // more than one batch of the link's size holds
		messages = append(messages, message(t, "order-1", n+1, randomText(n, 8<<10)))
	}
	if n, err := topic.Send(t.Context(), messages); n != count || err != nil {
		t.Fatalf("Send = %d, %v, want %d", n, err, count)
	}
	for i, got := range receive(t, connection, count) {
		if got.MessageID != messages[i].ID {
			t.Fatalf("message %d is %s, want %s", i, got.MessageID, messages[i].ID)
		}
	}
}

func TestTopic_OfABatchTheMessagesBeforeATooLargeOneAreAccepted(t *testing.T) {
	t.Parallel()
	connection := testserver.Start(t).ServiceBus
	topic := open(t, connection)
	messages := []contract.Message{
		message(t, "order-1", 1, "small"),
		message(t, "order-1", 2, "small"),
		message(t, "order-1", 3, randomText(3, 2<<20)),
		message(t, "order-1", 4, "small"),
	}
	n, err := topic.Send(t.Context(), messages)
	wantClass(t, err, relay.TooLarge)
	if n != 2 {
		t.Errorf("Send accepted %d, want the 2 before the large one", n)
	}
	if n, err := topic.Send(t.Context(), messages[3:]); n != 1 || err != nil {
		t.Errorf("Send of the rest = %d, %v, want 1", n, err)
	}
}

func TestTopic_ATopicThatDoesNotExistIsSaidByName(t *testing.T) {
	t.Parallel()
	topic := servicebus.New("nowhere", servicebus.WithConnectionString(testserver.Get(t).ServiceBus, servicebus.Options{}))
	t.Cleanup(topic.Close)
	_, err := topic.Send(t.Context(), []contract.Message{message(t, "order-1", 1, "x")})
	wantClass(t, err, relay.Blocked)
	if !strings.Contains(err.Error(), `"nowhere"`) {
		t.Errorf("error %q does not name the topic", err)
	}
}

func TestTopic_ManySendersShareOneConnection(t *testing.T) {
	t.Parallel()
	target := testserver.Start(t).ServiceBus
	proxy, connection := proxied(t, target)
	topic := open(t, connection)
	var senders sync.WaitGroup
	for n := range 100 {
		senders.Go(func() {
			if n, err := topic.Send(t.Context(), []contract.Message{message(t, fmt.Sprint("order-", n), n, "x")}); n != 1 || err != nil {
				t.Errorf("Send = %d, %v, want 1", n, err)
			}
		})
	}
	senders.Wait()
	if got := proxy.Connections(); got != 1 {
		t.Errorf("%d connections for 100 senders, want 1", got)
	}
}

func TestTopic_ALostConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	target := testserver.Start(t).ServiceBus
	proxy, connection := proxied(t, target)
	topic := open(t, connection)
	first := message(t, "order-1", 1, "x")
	if _, err := topic.Send(t.Context(), []contract.Message{first}); err != nil {
		t.Fatal(err)
	}
	proxy.Cut()
	second := message(t, "order-1", 2, "x")
	_, err := topic.Send(t.Context(), []contract.Message{second})
	wantClass(t, err, relay.Transient)
	proxy.Mend()
	testserver.Eventually(t, "the topic to send again", func() bool {
		n, _ := topic.Send(t.Context(), []contract.Message{second})
		return n == 1
	})
	got := receive(t, target, 2)
	if got[0].MessageID != first.ID || got[1].MessageID != second.ID {
		t.Errorf("received %s and %s, want %s and %s", got[0].MessageID, got[1].MessageID, first.ID, second.ID)
	}
}

func TestTopic_ASendEndsWithItsContext(t *testing.T) {
	t.Parallel()
	topic := open(t, testserver.Get(t).ServiceBus)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n, err := topic.Send(ctx, []contract.Message{message(t, "order-1", 1, "x")})
	if n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("Send = %d, %v, want the context's error", n, err)
	}
}

func open(t *testing.T, connection string) *servicebus.Topic {
	t.Helper()
	topic := servicebus.New(testserver.Topic, servicebus.WithConnectionString(connection, servicebus.Options{}))
	t.Cleanup(topic.Close)
	return topic
}

// proxied returns a proxy to the namespace, and a connection string through it.
func proxied(t *testing.T, connection string) (*testserver.Proxy, string) {
	t.Helper()
	_, after, _ := strings.Cut(connection, "Endpoint=sb://")
	target, _, _ := strings.Cut(after, ";")
	target = strings.TrimSuffix(target, "/")
	proxy := testserver.NewProxy(t, target)
	return proxy, strings.Replace(connection, target, proxy.Addr(), 1)
}

func message(t *testing.T, aggregateID string, version int, text string) contract.Message {
	t.Helper()
	position := contract.StreamPosition(1, uint32(version), "82AB")
	m, err := contract.Encode(contract.Event{
		ID:          fmt.Sprintf("%s-%d", aggregateID, version),
		Source:      "/shop/events",
		Type:        "OrderPlaced",
		AggregateID: aggregateID,
		Time:        time.Unix(1700000000, 0),
		Operation:   contract.Insert,
		Sequence:    contract.SequenceOf(contract.VersionOf(int64(version)), position),
		Position:    position,
		Version:     contract.VersionOf(int64(version)),
		Term:        3,
		ContentType: contract.ContentTypeJSON,
		Data:        fmt.Appendf(nil, "{%q:%q}", "text", text),
	}, contract.EncodeOptions{CompressAbove: 100})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// randomText is text that does not compress below its own half.
func randomText(seed, size int) string {
	text := make([]byte, size)
	state := uint64(seed)*2862933555777941757 + 3037000493
	for i := range text {
		state = state*6364136223846793005 + 1442695040888963407
		text[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[state>>58]
	}
	return string(text)
}

func wantClass(t *testing.T, err error, want relay.Class) {
	t.Helper()
	failure, ok := errors.AsType[*relay.SendError](err)
	if !ok || failure.Class != want {
		t.Fatalf("error is %v, want one of class %q", err, want)
	}
}

// receive returns the next count messages of the plain subscription, in the
// order in which the topic accepted them. The SDK may hand them out in another.
func receive(t *testing.T, connection string, count int) []*azservicebus.ReceivedMessage {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(connection, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close(context.WithoutCancel(t.Context())) }()
	receiver, err := client.NewReceiverForSubscription(testserver.Topic, "observer", nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []*azservicebus.ReceivedMessage
	for len(all) < count {
		some, err := receiver.ReceiveMessages(t.Context(), count-len(all), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range some {
			if err := receiver.CompleteMessage(t.Context(), m, nil); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b *azservicebus.ReceivedMessage) int {
		return cmp.Compare(*a.SequenceNumber, *b.SequenceNumber)
	})
	return all
}
