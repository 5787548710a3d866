package amqpserver_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

func TestSend_AMessageArrivesWithEverythingItWasSentWith(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	c := ns.client(t)
	sent := &azservicebus.Message{
		Body:             []byte(`{"total": 3}`),
		MessageID:        new("id-1"),
		SessionID:        new("order-1"),
		PartitionKey:     new("order-1"),
		Subject:          new("OrderPlaced"),
		To:               new("somewhere"),
		ReplyTo:          new("back"),
		ReplyToSessionID: new("back-session"),
		CorrelationID:    new("correlation"),
		ContentType:      new("application/json"),
		TimeToLive:       new(time.Hour),
		ApplicationProperties: map[string]any{
			"text": "ä", "number": int64(-5), "small": int32(7), "fraction": 1.5, "flag": true,
			"time": time.UnixMilli(1_700_000_000_123).UTC(),
		},
	}
	must(t, ns.sender(t, c, "changes").SendMessage(t.Context(), sent, nil))

	r, err := c.NewReceiverForSubscription("changes", "observer", nil)
	must(t, err)
	got := receive(t, r, 1)[0]

	equal(t, "body", string(got.Body), string(sent.Body))
	equal(t, "message id", got.MessageID, *sent.MessageID)
	equalPtr(t, "session id", got.SessionID, sent.SessionID)
	equalPtr(t, "partition key", got.PartitionKey, sent.PartitionKey)
	equalPtr(t, "subject", got.Subject, sent.Subject)
	equalPtr(t, "to", got.To, sent.To)
	equalPtr(t, "reply to", got.ReplyTo, sent.ReplyTo)
	equalPtr(t, "reply to session", got.ReplyToSessionID, sent.ReplyToSessionID)
	equalPtr(t, "correlation id", got.CorrelationID, sent.CorrelationID)
	equalPtr(t, "content type", got.ContentType, sent.ContentType)
	equalPtr(t, "time to live", got.TimeToLive, sent.TimeToLive)
	for key, want := range sent.ApplicationProperties {
		equal(t, "property "+key, fmt.Sprintf("%T %[1]v", got.ApplicationProperties[key]), fmt.Sprintf("%T %[1]v", want))
	}
	equal(t, "delivery count", got.DeliveryCount, 1)
	equal(t, "state", got.State, azservicebus.MessageStateActive)
	if got.SequenceNumber == nil || got.EnqueuedTime == nil || got.LockedUntil == nil || got.LockToken == [16]byte{} {
		t.Errorf("got sequence number %v, enqueued %v, locked until %v, token %v; want all of them set",
			got.SequenceNumber, got.EnqueuedTime, got.LockedUntil, got.LockToken)
	}
}

func TestSend_ABatchArrivesAsItsMessages(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	c := ns.client(t)
	sender := ns.sender(t, c, "sessions")
	batch, err := sender.NewMessageBatch(t.Context(), nil)
	must(t, err)
	for i := range 50 {
		must(t, batch.AddMessage(&azservicebus.Message{Body: fmt.Append(nil, i), SessionID: new("a")}, nil))
	}
	must(t, sender.SendMessageBatch(t.Context(), batch, nil))

	r, err := c.AcceptSessionForQueue(t.Context(), "sessions", "a", nil)
	must(t, err)
	for i, m := range receive(t, r, 50) {
		equal(t, "body", string(m.Body), fmt.Sprint(i))
	}
}

func TestSend_ABatchOfSeveralSessionsIsRefusedWhereTheTopicIsPartitioned(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	sender := ns.sender(t, ns.client(t), "changes")
	batch, err := sender.NewMessageBatch(t.Context(), nil)
	must(t, err)
	must(t, batch.AddMessage(&azservicebus.Message{SessionID: new("a")}, nil))
	must(t, batch.AddMessage(&azservicebus.Message{SessionID: new("b")}, nil))
	err = sender.SendMessageBatch(t.Context(), batch, nil)
	wantCondition(t, err, entity.ConditionNotAllowed)
}

func TestSend_AMessageOfManyFramesArrivesWhole(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	c := ns.client(t)
	body := bytes.Repeat([]byte("0123456789abcdef"), 250_000/16)
	must(t, ns.sender(t, c, "plain").SendMessage(t.Context(), &azservicebus.Message{Body: body}, nil))
	r, err := c.NewReceiverForQueue("plain", nil)
	must(t, err)
	if got := receive(t, r, 1)[0]; !bytes.Equal(got.Body, body) {
		t.Errorf("got a body of %d bytes, want the %d that were sent", len(got.Body), len(body))
	}
}

func TestSend_AMessageAboveTheLimitIsTooLarge(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	sender := ns.sender(t, ns.client(t), "plain")
	err := sender.SendMessage(t.Context(), &azservicebus.Message{Body: make([]byte, 300_000)}, nil)
	if !errors.Is(err, azservicebus.ErrMessageTooLarge) {
		t.Errorf("got %v, want ErrMessageTooLarge", err)
	}
}

func TestSend_SendingToAnUnknownEntityFails(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	err := ns.sender(t, ns.client(t), "nowhere").SendMessage(t.Context(), &azservicebus.Message{}, nil)
	wantCode(t, err, azservicebus.CodeNotFound)
}

func TestSend_ARefusedMessageLeavesTheLinkUsable(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	c := ns.client(t)
	sender := ns.sender(t, c, "sessions")
	err := sender.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("no session")}, nil)
	wantCondition(t, err, entity.ConditionNotAllowed)
	must(t, sender.SendMessage(t.Context(), &azservicebus.Message{SessionID: new("a")}, nil))
}

func TestSend_ConcurrentSendersOnOneLinkLoseNothing(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	c := ns.client(t)
	sender := ns.sender(t, c, "plain")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for j := range 25 {
				if err := sender.SendMessage(t.Context(), &azservicebus.Message{Body: fmt.Append(nil, i*25+j)}, nil); err != nil {
					t.Errorf("send: %v", err)
				}
			}
		})
	}
	wg.Wait()
	r, err := c.NewReceiverForQueue("plain", nil)
	must(t, err)
	seen := map[string]bool{}
	for _, m := range receive(t, r, 500) {
		seen[string(m.Body)] = true
	}
	equal(t, "distinct messages", len(seen), 500)
}

func TestSend_ScheduledMessagesWaitAndCanBeCancelled(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	c := ns.client(t)
	sender := ns.sender(t, c, "plain")
	later := time.Now().Add(time.Hour)
	numbers, err := sender.ScheduleMessages(t.Context(), []*azservicebus.Message{{Body: []byte("a")}, {Body: []byte("b")}}, later, nil)
	must(t, err)
	equal(t, "sequence numbers", len(numbers), 2)
	must(t, sender.CancelScheduledMessages(t.Context(), numbers[:1], nil))

	r, err := c.NewReceiverForQueue("plain", nil)
	must(t, err)
	left, err := r.PeekMessages(t.Context(), 10, nil)
	must(t, err)
	equal(t, "messages left", len(left), 1)
	equal(t, "body", string(left[0].Body), "b")
	equal(t, "state", left[0].State, azservicebus.MessageStateScheduled)
	if got := left[0].ScheduledEnqueueTime; got == nil || got.UnixMilli() != later.UnixMilli() {
		t.Errorf("got scheduled time %v, want %v", got, later)
	}
}

func TestSend_AMessageScheduledForNowArrives(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	c := ns.client(t)
	_, err := ns.sender(t, c, "plain").ScheduleMessages(t.Context(), []*azservicebus.Message{{Body: []byte("soon")}}, time.Now(), nil)
	must(t, err)
	r, err := c.NewReceiverForQueue("plain", nil)
	must(t, err)
	equal(t, "body", string(receive(t, r, 1)[0].Body), "soon")
}

func TestSend_OwnAnnotationsTravelWithTheMessage(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	c := ns.client(t)
	sent := &azservicebus.AMQPAnnotatedMessage{
		MessageAnnotations: map[any]any{"x-own": "kept", "x-opt-sequence-number": int64(99)},
		Properties:         &azservicebus.AMQPAnnotatedMessageProperties{},
		Body:               azservicebus.AMQPAnnotatedMessageBody{Value: []any{"a", int32(1)}},
		Footer:             map[any]any{"checksum": "c"},
	}
	must(t, ns.sender(t, c, "plain").SendAMQPAnnotatedMessage(t.Context(), sent, nil))
	r, err := c.NewReceiverForQueue("plain", nil)
	must(t, err)
	got := receive(t, r, 1)[0].RawAMQPMessage
	equal(t, "own annotation", got.MessageAnnotations["x-own"], any("kept"))
	if n := got.MessageAnnotations["x-opt-sequence-number"]; n == any(int64(99)) {
		t.Errorf("got the sender's sequence number %v, want the service's own", n)
	}
	equal(t, "value", fmt.Sprint(got.Body.Value), "[a 1]")
	equal(t, "footer", got.Footer["checksum"], any("c"))
}

func TestSend_AMessageWithoutAnIDIsGivenOne(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	c := ns.client(t)
	s := ns.sender(t, c, "plain")
	must(t, s.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("body"), Subject: new("subject")}, nil))
	must(t, s.SendMessage(t.Context(), &azservicebus.Message{MessageID: new("mine")}, nil))
	r, err := c.NewReceiverForQueue("plain", nil)
	must(t, err)
	got := receive(t, r, 2)
	if got[0].MessageID == "" || got[1].MessageID != "mine" {
		t.Errorf("got ids %q and %q, want one that was made and mine", got[0].MessageID, got[1].MessageID)
	}
	equalPtr(t, "subject", got[0].Subject, new("subject"))
	equal(t, "body", string(got[0].Body), "body")
}
