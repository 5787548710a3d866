package app_test

import (
	"fmt"
	"strings"
	"testing"

	"changerelay/services/projector/internal/readmodel"
)

// leaving notes that a subscription of a topic has fed the read collections, and makes
// that of another topic the commands' own.
func leaving(t *testing.T, from, subscription, to string) {
	t.Helper()
	client, database := servers.Mongo(t, nil)
	onTopic(t, from, database, counting)
	deployed(t, client, readmodel.Config{Database: database, Feed: readmodel.Feed{Topic: from, Subscription: subscription}},
		file(t, "projections.yaml", counting))
	t.Setenv("SERVICEBUS_TOPIC", to)
}

func notMoved(t *testing.T, reason string, args ...string) {
	t.Helper()
	lines, err := runCommand(t, append([]string{"move"}, args...)...)
	if err == nil || len(lines) != 1 || lines[0]["moved"] != false || !strings.Contains(fmt.Sprint(lines[0]["refused"]), reason) {
		t.Errorf("move: got %v and %v, want it refused: %s", lines, err, reason)
	}
}

// What waits in the subscription that a read model is moved from nobody would apply any
// more.
func TestMove_IsRefusedWhileMessagesWaitInTheSubscriptionThatIsLeft(t *testing.T) {
	leaving(t, "waits", "projector", "waits-not")
	send(t, "waits", append(happened("a", 1, 2), happened("b", 1, 1)...)...)
	const sessions, messages = `messages of 2 sessions wait in subscription "projector" of topic "waits"`, `3 messages wait in subscription "projector" of topic "waits"`
	notMoved(t, sessions)
	t.Setenv("SERVICEBUS_MANAGEMENT_URL", servers.ManagementURL)
	notMoved(t, messages)
	notMoved(t, messages, "--dry-run")
	if lines, err := runCommand(t, "move", "--leave-messages"); err != nil || len(lines) != 1 || lines[0]["moved"] != true {
		t.Errorf("a move by those who know: got %v and %v, want it done", lines, err)
	}
	if lines := ledger(t); len(lines) != 1 || !strings.Contains(fmt.Sprint(lines[0]["why"]), messages) {
		t.Errorf("the ledger: got %v, want how many were left", lines)
	}
}

// The same holds for another group's subscription, whose read collections are taken.
func TestMove_IsRefusedWhileMessagesWaitForTheGroupThatIsLeft(t *testing.T) {
	leaving(t, "waits-group", "projector", "waits-not")
	send(t, "waits-group", happened("a", 1, 2)...)
	t.Setenv("READMODEL_GROUP", "other")
	notMoved(t, `messages of 1 sessions wait in subscription "projector" of topic "waits-group"`)
}

// What cannot be looked at may have messages.
func TestMove_IsRefusedWhereTheSubscriptionThatIsLeftCannotBeLookedAt(t *testing.T) {
	leaving(t, "waits", "missing", "waits-not")
	notMoved(t, `nobody can say whether messages wait in subscription "missing" of topic "waits"`)
	t.Setenv("SERVICEBUS_MANAGEMENT_URL", servers.ManagementURL)
	notMoved(t, `nobody can say whether messages wait in subscription "missing" of topic "waits"`)
	if lines, err := runCommand(t, "move", "--leave-messages"); err != nil || len(lines) != 1 || lines[0]["moved"] != true {
		t.Errorf("a move by those who know: got %v and %v, want it done", lines, err)
	}
}
