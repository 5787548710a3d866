package amqpserver_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

// received sends one message to queue "plain" and receives it.
func received(t *testing.T, ns *namespace) (*azservicebus.Client, *azservicebus.Receiver, *azservicebus.ReceivedMessage) {
	t.Helper()
	c := ns.client(t)
	must(t, ns.sender(t, c, "plain").SendMessage(t.Context(), &azservicebus.Message{Body: []byte("body")}, nil))
	r, err := c.NewReceiverForQueue("plain", nil)
	must(t, err)
	return c, r, receive(t, r, 1)[0]
}

func counts(t *testing.T, ns *namespace) entity.Counts {
	t.Helper()
	q, err := ns.broker.Queue("plain")
	must(t, err)
	return q.Counts
}

func TestSettle_ACompletedMessageIsGone(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	_, r, m := received(t, ns)
	must(t, r.CompleteMessage(t.Context(), m, nil))
	equal(t, "counts", counts(t, ns), entity.Counts{})
}

func TestSettle_AnAbandonedMessageComesBackWithItsProperties(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	_, r, m := received(t, ns)
	modified := map[string]any{"why": "later", "blob": []byte("kept apart from the frame it came in")}
	must(t, r.AbandonMessage(t.Context(), m, &azservicebus.AbandonMessageOptions{PropertiesToModify: modified}))
	again := receive(t, r, 1)[0]
	equal(t, "binary property", fmt.Sprintf("%s", again.ApplicationProperties["blob"]), "kept apart from the frame it came in")
	equal(t, "delivery count", again.DeliveryCount, 2)
	equal(t, "property", again.ApplicationProperties["why"], any("later"))
	equal(t, "body", string(again.Body), "body")
}

func TestSettle_ADeadLetteredMessageTellsWhy(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	c, r, m := received(t, ns)
	must(t, r.DeadLetterMessage(t.Context(), m, &azservicebus.DeadLetterOptions{
		Reason: new("Foreign"), ErrorDescription: new("not ours"), PropertiesToModify: map[string]any{"extra": int64(1)},
	}))
	dead, err := c.NewReceiverForQueue("plain", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	must(t, err)
	got := receive(t, dead, 1)[0]
	equalPtr(t, "reason", got.DeadLetterReason, new("Foreign"))
	equalPtr(t, "description", got.DeadLetterErrorDescription, new("not ours"))
	equal(t, "property", got.ApplicationProperties["extra"], any(int64(1)))
	equal(t, "body", string(got.Body), "body")
	must(t, dead.CompleteMessage(t.Context(), got, nil))
	equal(t, "counts", counts(t, ns), entity.Counts{})
}

func TestSettle_ADeferredMessageIsReceivedByNumberAndCompleted(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	_, r, m := received(t, ns)
	must(t, r.DeferMessage(t.Context(), m, nil))
	got, err := r.ReceiveDeferredMessages(t.Context(), []int64{*m.SequenceNumber}, nil)
	must(t, err)
	equal(t, "messages", len(got), 1)
	equal(t, "body", string(got[0].Body), "body")
	equal(t, "state", got[0].State, azservicebus.MessageStateDeferred)
	must(t, r.RenewMessageLock(t.Context(), got[0], nil))
	must(t, r.CompleteMessage(t.Context(), got[0], nil))
	equal(t, "counts", counts(t, ns), entity.Counts{})
}

func TestSettle_ADeferredMessageThatIsNotThereIsNotFound(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	r, err := ns.client(t).NewReceiverForQueue("plain", nil)
	must(t, err)
	_, err = r.ReceiveDeferredMessages(t.Context(), []int64{12345}, nil)
	wantCode(t, err, azservicebus.CodeNotFound)
}

// The message behind the deferred one tells when both have expired: a client then
// finds it in the dead-letter queue.
func TestSettle_ADeferredMessageExpiresWhenItIsAskedFor(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	_, err := ns.broker.CreateQueue("short", entity.QueueProperties{DefaultMessageTimeToLive: 2 * time.Second, DeadLetteringOnMessageExpiration: true})
	must(t, err)
	c := ns.client(t)
	s := ns.sender(t, c, "short")
	must(t, s.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("deferred")}, nil))
	r, err := c.NewReceiverForQueue("short", nil)
	must(t, err)
	m := receive(t, r, 1)[0]
	must(t, r.DeferMessage(t.Context(), m, nil))
	must(t, s.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("behind")}, nil))
	dead, err := c.NewReceiverForQueue("short", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	must(t, err)
	equal(t, "dead-lettered first", string(receive(t, dead, 1)[0].Body), "behind")

	there, err := r.PeekMessages(t.Context(), 10, nil)
	must(t, err)
	equal(t, "messages", len(there), 1)
	equal(t, "state", there[0].State, azservicebus.MessageStateDeferred)
	_, err = r.ReceiveDeferredMessages(t.Context(), []int64{*m.SequenceNumber}, nil)
	wantCode(t, err, azservicebus.CodeNotFound)
	got := receive(t, dead, 1)[0]
	equal(t, "dead-lettered when asked for", string(got.Body), "deferred")
	equalPtr(t, "reason", got.DeadLetterReason, new("TTLExpiredException"))
}

func TestSettle_EachSettlementWorksOverManagement(t *testing.T) {
	t.Parallel()
	settle := map[string]func(*testing.T, *azservicebus.Receiver, *azservicebus.ReceivedMessage) error{
		"abandon": func(t *testing.T, r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) error {
			t.Helper()
			return r.AbandonMessage(t.Context(), m, nil)
		},
		"defer": func(t *testing.T, r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) error {
			t.Helper()
			return r.DeferMessage(t.Context(), m, nil)
		},
		"dead-letter": func(t *testing.T, r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) error {
			t.Helper()
			return r.DeadLetterMessage(t.Context(), m, nil)
		},
	}
	want := map[string]entity.Counts{
		"abandon":     {Active: 0, Deferred: 1},
		"defer":       {Deferred: 1},
		"dead-letter": {DeadLetter: 1},
	}
	for name, do := range settle {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := startNamespace(t)
			_, r, m := received(t, ns)
			must(t, r.DeferMessage(t.Context(), m, nil))
			got, err := r.ReceiveDeferredMessages(t.Context(), []int64{*m.SequenceNumber}, nil)
			must(t, err)
			must(t, do(t, r, got[0]))
			equal(t, "counts", counts(t, ns), want[name])
		})
	}
}

func TestSettle_ALostMessageLockIsToldToWhoeverSettles(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	c, r, m := received(t, ns)
	// Settled behind the receiver's back, the token means nothing any more.
	other, err := c.NewReceiverForQueue("plain", nil)
	must(t, err)
	stolen := *m
	stolen.RawAMQPMessage = nil
	must(t, other.CompleteMessage(t.Context(), &stolen, nil))

	wantCode(t, r.CompleteMessage(t.Context(), m, nil), azservicebus.CodeLockLost)
	wantCode(t, r.RenewMessageLock(t.Context(), m, nil), azservicebus.CodeLockLost)
}

func TestSettle_RenewingAMessageLockMovesItsEnd(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	_, r, m := received(t, ns)
	before := *m.LockedUntil
	eventually(t, "a later end of the lock", func() bool {
		must(t, r.RenewMessageLock(t.Context(), m, nil))
		return m.LockedUntil.After(before)
	})
}

func TestSettle_ReceiveAndDeleteNeedsNoSettlement(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	c := ns.client(t)
	sender := ns.sender(t, c, "plain")
	for range 3 {
		must(t, sender.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("x")}, nil))
	}
	r, err := c.NewReceiverForQueue("plain", &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	must(t, err)
	equal(t, "messages", len(receive(t, r, 3)), 3)
	equal(t, "counts", counts(t, ns), entity.Counts{})
}

func TestSettle_PeekingLocksNothing(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	c := ns.client(t)
	sender := ns.sender(t, c, "plain")
	for _, body := range []string{"a", "b", "c"} {
		must(t, sender.SendMessage(t.Context(), &azservicebus.Message{Body: []byte(body)}, nil))
	}
	r, err := c.NewReceiverForQueue("plain", nil)
	must(t, err)
	first, err := r.PeekMessages(t.Context(), 2, nil)
	must(t, err)
	equal(t, "first page", len(first), 2)
	rest, err := r.PeekMessages(t.Context(), 2, nil)
	must(t, err)
	equal(t, "second page", len(rest), 1)
	equal(t, "body", string(rest[0].Body), "c")
	none, err := r.PeekMessages(t.Context(), 2, nil)
	must(t, err)
	equal(t, "third page", len(none), 0)
	equal(t, "messages still there", len(receive(t, r, 3)), 3)
}

func TestSettle_MessagesOfAPlainQueueStayLockedWhenTheLinkCloses(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	c, r, m := received(t, ns)
	must(t, r.Close(t.Context()))
	again, err := c.NewReceiverForQueue("plain", nil)
	must(t, err)
	token := *m
	token.RawAMQPMessage = nil
	must(t, again.CompleteMessage(t.Context(), &token, nil))
	equal(t, "counts", counts(t, ns), entity.Counts{})
}
