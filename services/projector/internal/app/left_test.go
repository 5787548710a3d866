package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/sandboxtest"
)

// leaving notes that a subscription of a topic has fed the read collections, and makes
// that of another topic the commands' own.
func leaving(t *testing.T, from, subscription, to string) *mongo.Database {
	t.Helper()
	client, database := servers.Mongo(t, nil)
	onTopic(t, from, database, counting)
	deployed(t, client, readmodel.Config{Database: database, Feed: readmodel.Feed{Topic: from, Subscription: subscription}},
		file(t, "projections.yaml", counting))
	t.Setenv("SERVICEBUS_TOPIC", to)
	return client.Database(database)
}

// moves runs a move that must be done, and returns its line in the ledger.
func moves(t *testing.T, args ...string) string {
	t.Helper()
	if lines, err := runCommand(t, append([]string{"move"}, args...)...); err != nil || len(lines) != 1 || lines[0]["moved"] != true {
		t.Fatalf("move: got %v and %v, want it done", lines, err)
	}
	lines := ledger(t)
	return fmt.Sprint(lines[len(lines)-1]["why"])
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

// What is deferred, or scheduled in the topic, has not been applied either.
func TestMove_IsRefusedWhileMessagesAreDeferredOrScheduled(t *testing.T) {
	leaving(t, "waits-aside", "projector", "waits-not")
	t.Setenv("SERVICEBUS_MANAGEMENT_URL", servers.ManagementURL)
	send(t, "waits-aside", happened("a", 1, 1)...)
	client := servers.Client(t)
	receiver, err := client.AcceptSessionForSubscription(t.Context(), "waits-aside", "projector", "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := receiver.ReceiveMessages(t.Context(), 1, nil)
	if err != nil || len(messages) != 1 {
		t.Fatalf("receive: got %d and %v", len(messages), err)
	}
	if err := receiver.DeferMessage(t.Context(), messages[0], nil); err != nil {
		t.Fatal(err)
	}
	notMoved(t, `1 messages wait in subscription "projector" of topic "waits-aside"`)
	if _, err := receiver.ReceiveDeferredMessages(t.Context(), []int64{*messages[0].SequenceNumber}, nil); err != nil {
		t.Fatal(err)
	}
	sender, err := client.NewSender("waits-aside", nil)
	if err != nil {
		t.Fatal(err)
	}
	session := "a"
	later := &azservicebus.Message{SessionID: &session, Body: []byte("{}")}
	if _, err := sender.ScheduleMessages(t.Context(), []*azservicebus.Message{later, later}, time.Now().Add(time.Hour), nil); err != nil {
		t.Fatal(err)
	}
	notMoved(t, `1 messages, and 2 scheduled ones, wait in subscription "projector" of topic "waits-aside"`)
	// A subscription of the same topic gets what is scheduled.
	t.Setenv("SERVICEBUS_TOPIC", "waits-aside")
	t.Setenv("SERVICEBUS_SUBSCRIPTION", "second")
	notMoved(t, `1 messages wait in subscription "projector" of topic "waits-aside"`)
}

// The same holds for another group's subscription, whose read collections are taken: also
// where only what stands beside its processes tells of it.
func TestMove_IsRefusedWhileMessagesWaitForTheGroupThatIsLeft(t *testing.T) {
	db := leaving(t, "waits-group", "projector", "waits-not")
	if _, err := db.Collection(projection.Owners).DeleteMany(t.Context(), bson.D{{Key: "feed", Value: bson.D{{Key: "$exists", Value: true}}}}); err != nil {
		t.Fatal(err)
	}
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

// What is dead-lettered there is no message that waits, and is lacking all the same. The
// way back that the ledger names works: in the new environment, with the subscription
// that was left.
func TestMove_IsRefusedWhileTheSubscriptionThatIsLeftHasDeadLetters(t *testing.T) {
	for _, group := range []string{"", "other"} {
		t.Run("to the group "+group, func(t *testing.T) {
			from := "waits-dead" + group
			db := leaving(t, from, "projector", "waits-not")
			t.Setenv("READMODEL_GROUP", group)
			send(t, from, happened("a", 1, 2)...)
			deadLetter(t, from, "a")
			deadLetter(t, from, "a")
			dead := fmt.Sprintf("2 messages of 1 aggregates are dead-lettered in subscription \"projector\" of topic %q", from)
			notMoved(t, dead)
			notMoved(t, dead, "--dry-run")
			way := fmt.Sprintf("SERVICEBUS_TOPIC=%s SERVICEBUS_SUBSCRIPTION=projector", from)
			if why := moves(t, "--leave-messages"); !strings.Contains(why, dead) || !strings.Contains(why, way) {
				t.Errorf("the ledger: got %v, want how many were left, and the way back", why)
			}
			t.Setenv("SERVICEBUS_TOPIC", from)
			refused(t, "refused, nothing is changed", "parked", "redrive", "a") // it is for dead letters alone
			if lines, err := runCommand(t, "dlq", "redrive", "--all"); err != nil || len(lines) != 3 {
				t.Fatalf("the way back: got %v and %v, want both put back", lines, err)
			}
			if got := seen(sandboxtest.Documents(t, db, "orders")["a"]); !slices.Equal(got, []int64{1, 2}) {
				t.Errorf("a has seen %v, want both", got)
			}
			if lines, err := runCommand(t, "dlq", "list"); err != nil || len(lines) != 0 {
				t.Errorf("dead letters: got %v and %v, want none", lines, err)
			}
		})
	}
}

// Dead letters that one move has left are lacking after the next, which says so, as do
// those who ask whether a version is whole.
func TestMove_IsRefusedForDeadLettersThatAnEarlierOneHasLeft(t *testing.T) {
	leaving(t, "waits-earlier", "projector", "waits-not")
	send(t, "waits-earlier", happened("a", 1, 1)...)
	deadLetter(t, "waits-earlier", "a")
	t.Setenv("READMODEL_GROUP", "second")
	moves(t, "--leave-messages")
	t.Setenv("READMODEL_GROUP", "third")
	t.Setenv("SERVICEBUS_TOPIC", "waits-too")
	const dead = `1 messages of 1 aggregates are dead-lettered in subscription "projector" of topic "waits-earlier"`
	notMoved(t, dead)
	moves(t, "--leave-messages")
	t.Setenv("SERVICEBUS_TOPIC", "waits-earlier")
	if lines, err := runCommand(t, "dlq", "redrive", "--all"); err != nil || len(lines) != 2 {
		t.Fatalf("the way back: got %v and %v, want it put back", lines, err)
	}
	t.Setenv("SERVICEBUS_TOPIC", "waits-not")
	moves(t)
}

// Where the group that is left keeps collections, its dead letters are its own.
func TestMove_LeavesDeadLettersToAGroupThatKeepsCollections(t *testing.T) {
	db := leaving(t, "waits-keeper", "projector", "waits-not")
	keeps(t, db, "invoices")
	send(t, "waits-keeper", happened("a", 1, 1)...)
	deadLetter(t, "waits-keeper", "a")
	t.Setenv("READMODEL_GROUP", "other")
	notMoved(t, `after it they are the group ""'s`)
	moves(t, "--leave-messages")
	t.Setenv("SERVICEBUS_TOPIC", "waits-keeper")
	refused(t, `feeds the group "", which has the collections ["invoices"]`, "dlq", "redrive", "--all")
	refused(t, `feeds the group "", which has the collections ["invoices"]`, "dlq", "discard", "--all")
	if lines, err := runCommand(t, "dlq", "list"); err != nil || len(lines) != 1 {
		t.Errorf("dead letters: got %v and %v, want it there", lines, err)
	}
	t.Setenv("SERVICEBUS_TOPIC", "waits-too")
	moves(t)
}

// keeps notes that a collection is the group's "".
func keeps(t *testing.T, db *mongo.Database, collection string) {
	t.Helper()
	if _, err := db.Collection(projection.Owners).InsertOne(t.Context(), bson.D{{Key: "_id", Value: collection}, {Key: "group", Value: ""}, {Key: "by", Value: "a test"}}); err != nil {
		t.Fatal(err)
	}
}

// Where a subscription is taken from a group that keeps collections, what waits there is
// applied to those that are moved alone.
func TestMove_IsRefusedWhileMessagesWaitForWhatAGroupKeeps(t *testing.T) {
	db := leaving(t, "waits-taken", "projector", "waits-taken")
	t.Setenv("READMODEL_GROUP", "other")
	send(t, "waits-taken", happened("a", 1, 2)...)
	deadLetter(t, "waits-taken", "a")
	if lines, err := runCommand(t, "move", "--dry-run"); err != nil || lines[0]["refused"] != nil {
		t.Errorf("where nothing is kept: got %v and %v, want it taken with what waits", lines, err)
	}
	keeps(t, db, "invoices")
	const messages = `messages of 1 sessions wait in subscription "projector" of topic "waits-taken" in "127.0.0.1", and would not be applied to ["invoices"]`
	notMoved(t, messages)
	const dead = `1 messages of 1 aggregates are dead-lettered in subscription "projector" of topic "waits-taken"`
	notMoved(t, dead)
	if why := moves(t, "--leave-messages"); !strings.Contains(why, messages) || !strings.Contains(why, dead) {
		t.Errorf("the ledger: got %v, want what is lacking", why)
	}
}

// A group that was moved to and whose projectors never started is left, too; an earlier
// release noted that beside the collections alone.
func TestMove_IsRefusedWhileMessagesWaitForAGroupThatNeverStarted(t *testing.T) {
	db := leaving(t, "waits-before", "projector", "waits-never")
	t.Setenv("READMODEL_GROUP", "second")
	moves(t)
	if err := db.Collection(projection.OfGroup(projection.Processes, "second")).Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	send(t, "waits-never", happened("a", 1, 2)...)
	t.Setenv("READMODEL_GROUP", "third")
	t.Setenv("SERVICEBUS_TOPIC", "waits-not")
	notMoved(t, `messages of 1 sessions wait in subscription "projector" of topic "waits-never"`)
}

// What is parked without a halt is lacking, too.
func TestMove_IsRefusedWhileMessagesAreParkedInTheGroupThatIsLeft(t *testing.T) {
	db := leaving(t, "waits", "projector", "waits-not")
	if _, err := db.Collection(projection.ParkedMessages).InsertOne(t.Context(), bson.D{{Key: "_id", Value: "a"}}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("READMODEL_GROUP", "other")
	refused(t, `the group "" has 0 halted aggregates and 1 parked messages`, "move")
}
