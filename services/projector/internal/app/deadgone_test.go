package app_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/services/projector/internal/sandboxtest"
)

// A dead letter that somebody else takes away while it is put back is said to be gone,
// which is a failure of whoever asked for it by its number. No halt is left.
func TestDeadRedrive_SaysThatTheOneAskedForIsGone(t *testing.T) {
	const topic = "deadgone"
	client, database := servers.Mongo(t, nil)
	cfg := configured(t, topic, database)
	onTopic(t, topic, database, counting)
	for _, aggregate := range []string{"a", "b"} {
		send(t, topic, happened(aggregate, 1, 1)...)
		deadLetter(t, topic, aggregate)
	}
	p := start(t, cfg, parse(t))
	until(t, "the projector runs", func() bool { return strings.Contains(p.logs.String(), "taking sessions") })
	receiver, err := servers.Client(t).NewReceiverForSubscription(topic, "projector", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = receiver.Close(t.Context()) }()
	at := regexp.MustCompile(`sb://([^;/]+)`).FindStringSubmatch(servers.ServiceBus)[1]

	// Three looks list two, and two list one; the next judges it, and the next but one
	// reads it to be parked.
	for _, want := range []string{"[gone]", "[gone <nil>]"} {
		const nth = 4
		letters, err := runCommand(t, "dlq", "list")
		if err != nil {
			t.Fatal(err)
		}
		somebody := &killer{texts: [][]byte{[]byte("com.microsoft:peek-message")}, nth: nth, lives: true}
		somebody.kill = func() { takeAway(t, receiver, number(letters[0])) }
		t.Setenv("SERVICEBUS_CONNECTION_STRING", strings.Replace(servers.ServiceBus, at, somebody.listen(t, at), 1))
		lines, err := runCommand(t, "dlq", "redrive", number(letters[0]))
		var fates []any
		for _, line := range lines {
			fates = append(fates, line["fate"])
		}
		if err == nil || !strings.Contains(err.Error(), "meanwhile") || fmt.Sprint(fates) != want || lines[0]["aggregate"] != letters[0]["session_id"] {
			t.Errorf("gone before look %d: got %v and %v, want %s and an error that says it", nth, lines, err, want)
		}
		if halted := sandboxtest.Documents(t, client.Database(database), "halted_aggregates"); len(halted) != 0 {
			t.Errorf("gone before look %d: %d aggregates are still halted, want none", nth, len(halted))
		}
		t.Setenv("SERVICEBUS_CONNECTION_STRING", servers.ServiceBus)
	}
}

// takeAway removes a dead letter, and gives back what comes before it.
func takeAway(t *testing.T, receiver *azservicebus.Receiver, letter string) {
	for {
		messages, err := receiver.ReceiveMessages(t.Context(), 1, nil)
		if err != nil {
			t.Errorf("receive dead letters: %v", err)
			return
		}
		if fmt.Sprint(*messages[0].SequenceNumber) == letter {
			if err := receiver.CompleteMessage(t.Context(), messages[0], nil); err != nil {
				t.Errorf("remove a dead letter: %v", err)
			}
			return
		}
		defer func() { _ = receiver.AbandonMessage(t.Context(), messages[0], nil) }()
	}
}

// number is the sequence number of a dead letter as it was printed.
func number(line map[string]any) string { return fmt.Sprintf("%.0f", line["sequence_number"]) }
