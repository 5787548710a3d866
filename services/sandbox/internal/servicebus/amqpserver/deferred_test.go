package amqpserver_test

import (
	"bytes"
	"strings"
	"testing"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/broker"
	"changerelay/services/sandbox/internal/servicebus/entity"
)

// putAside sends n messages of a size to queue "large" and defers them.
func putAside(t *testing.T, ns *namespace, n, size int) []int64 {
	t.Helper()
	_, err := ns.broker.CreateQueue("large", entity.QueueProperties{MaxMessageSizeInKilobytes: 100 << 10})
	must(t, err)
	body := amqp.AppendBodyValue(nil, bytes.Repeat([]byte("x"), size))
	var numbers []int64
	for range n {
		must(t, ns.broker.Send(t.Context(), "large", []*entity.Message{{Payload: body}}))
	}
	r, err := ns.broker.OpenReceiver(t.Context(), "large", broker.ReceiverOptions{})
	must(t, err)
	defer r.Close()
	for len(numbers) < n {
		ds, err := r.Receive(t.Context(), n)
		must(t, err)
		for _, d := range ds {
			must(t, r.Settle(d.LockToken, entity.Defer{}))
			numbers = append(numbers, d.SequenceNumber)
		}
	}
	return numbers
}

// messages are those of an answer.
func messages(answer map[string]any) []any {
	list, _ := answer["messages"].([]any)
	return list
}

// What an answer cannot hold is not taken, above all not for good.
func TestDeferred_WhatIsTooMuchForOneAnswerStays(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	numbers := putAside(t, ns, 70, 250_000)
	r := newRequester(t, ns, "large/$management")
	ask := func(numbers []int64, mode uint32) (int32, map[string]any) {
		return r.ask("com.microsoft:receive-by-sequence-number", map[string]any{"sequence-numbers": numbers, "receiver-settle-mode": mode})
	}
	for _, mode := range []uint32{0, 1} {
		status, _ := ask(numbers, mode)
		equal(t, "status", status, 403)
	}
	status, answer := ask(numbers[:35], 1)
	equal(t, "status of half", status, 200)
	equal(t, "messages of half", len(messages(answer)), 35)
	status, answer = ask(numbers[35:], 0)
	equal(t, "status of the other half", status, 200)
	equal(t, "messages of the other half", len(messages(answer)), 35)
}

// An entity may allow messages that are larger than the bound of what waits.
func TestDeferred_ALargeMessageIsGiven(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	const size = 20 << 20
	number := putAside(t, ns, 1, size)[0]
	r := newRequester(t, ns, "large/$management")
	status, answer := r.ask("com.microsoft:peek-message", map[string]any{"from-sequence-number": int64(0), "message-count": int32(5)})
	equal(t, "status of a peek", status, 200)
	equal(t, "messages of a peek", len(messages(answer)), 1)
	status, answer = r.ask("com.microsoft:receive-by-sequence-number", map[string]any{
		"sequence-numbers": []int64{number}, "receiver-settle-mode": uint32(1),
	})
	equal(t, "status", status, 200)
	equal(t, "messages", len(messages(answer)), 1)
	entry, _ := messages(answer)[0].(map[string]any)
	encoded, _ := entry["message"].([]byte)
	if len(encoded) < size {
		t.Errorf("got a message of %d bytes, want %d", len(encoded), size)
	}
}

// What outcomes have added counts in what an answer may hold.
func TestPeek_GivesNoMoreThanAnAnswerMayHold(t *testing.T) {
	t.Parallel()
	ns := startNamespace(t)
	const n, description = 40, 100_000
	fill(t, ns, n)
	r, err := ns.broker.OpenReceiver(t.Context(), "plain", broker.ReceiverOptions{})
	must(t, err)
	defer r.Close()
	for got := 0; got < n; {
		ds, err := r.Receive(t.Context(), n)
		must(t, err)
		for _, d := range ds {
			must(t, r.Settle(d.LockToken, entity.DeadLetter{Description: strings.Repeat("-", description)}))
			got++
		}
	}
	asker := newRequester(t, ns, "plain/$DeadLetterQueue/$management")
	status, answer := asker.ask("com.microsoft:peek-message", map[string]any{"from-sequence-number": int64(0), "message-count": int32(n)})
	equal(t, "status", status, 200)
	if got := len(messages(answer)); got < 1 || got > 1<<20/description {
		t.Errorf("got %d messages of %d bytes, want some and no more than a megabyte", got, description)
	}
}
