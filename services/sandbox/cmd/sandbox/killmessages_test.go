package main

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// messages keeps what must be true of a topic and its subscriptions: projector,
// where everything stays, and observer, from which messages are taken.
type messages struct {
	mu sync.Mutex // guards what follows
	// sent are ids whose send was acknowledged, by session, in their order.
	sent map[string][]string
	// tried are the ids of all sends.
	tried map[string]bool
	// completed are ids whose completion was acknowledged; doubtful are those
	// that were being completed.
	completed, doubtful map[string]bool
}

func newMessages() *messages {
	return &messages{sent: map[string][]string{}, tried: map[string]bool{}, completed: map[string]bool{}, doubtful: map[string]bool{}}
}

// bus connects to the process's Service Bus. Nothing is retried: the process is
// to die.
func (p *process) bus(t *testing.T) *azservicebus.Client {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(p.vars["SERVICEBUS_CONNECTION_STRING"],
		&azservicebus.ClientOptions{RetryOptions: azservicebus.RetryOptions{MaxRetries: -1}})
	must(t, err)
	t.Cleanup(func() {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		_ = client.Close(over) // the process may be dead
	})
	return client
}

// send sends to one session until the first error: single messages and batches
// in turn.
func (m *messages) send(ctx context.Context, bus *azservicebus.Client, l *load, name string) {
	sender, err := bus.NewSender("changes", nil)
	if err != nil {
		return
	}
	for n := 0; ctx.Err() == nil; n++ {
		ids := []string{fmt.Sprintf("%s message %04d", name, n)}
		if n%3 == 0 {
			ids = append(ids, ids[0]+" b", ids[0]+" c")
		}
		m.try(ids)
		if err := sendAll(ctx, sender, name, ids); err != nil {
			return
		}
		m.acknowledge(name, ids)
		l.acknowledged()
	}
}

func sendAll(ctx context.Context, sender *azservicebus.Sender, session string, ids []string) error {
	batch, err := sender.NewMessageBatch(ctx, nil)
	if err != nil {
		return err
	}
	for _, id := range ids {
		message := &azservicebus.Message{MessageID: &id, SessionID: &session, PartitionKey: &session, Body: []byte(id)}
		if len(ids) == 1 {
			return sender.SendMessage(ctx, message, nil)
		}
		if err := batch.AddMessage(message, nil); err != nil {
			return err
		}
	}
	return sender.SendMessageBatch(ctx, batch, nil)
}

func (m *messages) try(ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		m.tried[id] = true
	}
}

func (m *messages) acknowledge(session string, ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent[session] = append(m.sent[session], ids...)
}

// complete takes messages from observer until the first error.
func (m *messages) complete(ctx context.Context, bus *azservicebus.Client, l *load) {
	receiver, err := bus.NewReceiverForSubscription("changes", "observer", nil)
	if err != nil {
		return
	}
	for ctx.Err() == nil {
		received, err := receiver.ReceiveMessages(ctx, 5, nil)
		if err != nil {
			return
		}
		for _, message := range received {
			m.note(m.doubtful, message.MessageID)
			if err := receiver.CompleteMessage(ctx, message, nil); err != nil {
				return
			}
			m.note(m.completed, message.MessageID)
			l.acknowledged()
		}
	}
}

func (m *messages) note(in map[string]bool, id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	in[id] = true
}

// expect compares both subscriptions with what was acknowledged.
func (m *messages) expect(t *testing.T, p *process) {
	t.Helper()
	bus := p.bus(t)
	m.expectObserver(t, bus)
	for session := range m.sent {
		m.expectSession(t, bus, session)
	}
}

// expectObserver drains what nobody has completed, up to a last message.
func (m *messages) expectObserver(t *testing.T, bus *azservicebus.Client) {
	t.Helper()
	const last = "last"
	sender, err := bus.NewSender("changes", nil)
	must(t, err)
	must(t, sendAll(t.Context(), sender, last, []string{last}))
	receiver, err := bus.NewReceiverForSubscription("changes", "observer", &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	must(t, err)
	left := map[string]bool{}
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	for !left[last] {
		received, err := receiver.ReceiveMessages(ctx, 500, nil)
		must(t, err)
		for _, message := range received {
			id := message.MessageID
			if left[id] || m.completed[id] || !m.tried[id] && id != last {
				t.Errorf("observer: got %q, which came before, was completed or never sent", id)
			}
			left[id] = true
		}
	}
	for _, ids := range m.sent {
		for _, id := range ids {
			if !left[id] && !m.doubtful[id] {
				t.Errorf("observer: got no message %q, whose send was acknowledged", id)
			}
		}
	}
}

// expectSession drains a session, in which every message must have its place.
func (m *messages) expectSession(t *testing.T, bus *azservicebus.Client, session string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	receiver, err := bus.AcceptSessionForSubscription(ctx, "changes", "projector", session,
		&azservicebus.SessionReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	must(t, err)
	expected := m.sent[session]
	for len(expected) > 0 {
		received, err := receiver.ReceiveMessages(ctx, len(expected), nil)
		if err != nil {
			t.Fatalf("session %s: got %v, want %d more messages, the first %q", session, err, len(expected), expected[0])
		}
		for _, message := range received {
			if len(expected) == 0 || message.MessageID != expected[0] {
				t.Fatalf("session %s: got %q, want %q", session, message.MessageID, expected)
			}
			expected = expected[1:]
		}
	}
	must(t, receiver.Close(ctx))
}

func (m *messages) report(t *testing.T) {
	t.Helper()
	t.Logf("Service Bus: %d sends tried, %d sessions, %d completed", len(m.tried), len(m.sent), len(m.completed))
	if len(m.sent) == 0 || len(m.completed) == 0 {
		t.Error("want some of each, or nothing was tested")
	}
}
