package app_test

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/projector/internal/command"
	"changerelay/services/projector/internal/sandboxtest"
)

// redriveTopics are those of the tests of redrives.
var redriveTopics = append(redriveKillTopics(), "halfapplied", "acceptgap", "acceptlost", "anycase", "otherbody", "otherbody-json", "intheway", "interrupted", "discardnamed")

// keyedElse counts in documents of aggregates, and one kind of events in one of all
// of them.
const keyedElse = counting + `- name: all
  collection: all
  key: '"all"'
  on: {Doubled: {inc: {events: 1}}}
`

// A redrive that refuses an event has applied it to no projection, though some could
// still take it; accepted as lost it is lost as a whole.
func TestRedrive_WhatIsRefusedIsAppliedToNoProjection(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	p := start(t, configured(t, "halfapplied", database), load(t, file(t, "projections.yaml", keyedElse)))
	onTopic(t, "halfapplied", database, keyedElse)
	send(t, "halfapplied", event("a", 1, "Happened", `{}`), event("a", 2, "Doubled", `{"n":"x"}`))
	until(t, "the message is parked", func() bool { return p.Status().Parked == 1 })
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PROJECTIONS", file(t, "mended.yaml", strings.ReplaceAll(keyedElse, "data.n * 2", "100")))
	lose(t, db, "halted_aggregates")
	// The third came while the halt was gone, and is of one projection.
	third := event("a", 3, "Happened", `{}`)
	if _, err := db.Collection("orders").UpdateOne(t.Context(), bson.D{{Key: "_id", Value: "a"}}, bson.D{{Key: "$set", Value: bson.D{
		{Key: "_relay.sequence", Value: third.Sequence}, {Key: "_relay.eventId", Value: third.ID},
	}}}); err != nil {
		t.Fatal(err)
	}
	untouched := func(when string) {
		t.Helper()
		if all := sandboxtest.Documents(t, db, "all"); len(all) != 0 {
			t.Errorf("%s: the other projection has %v, want nothing of the event", when, all)
		}
	}
	if line, err := redriven(t, "a"); err == nil || line["failed_event_id"] != "a-2" || line["applied"] != 0.0 {
		t.Errorf("got %v and %v, want it refused", line, err)
	}
	untouched("refused")
	if line, err := redriven(t, "a", "--accept-lost", "--dry-run"); err != nil || line["would_lose"] != 1.0 || line["would_apply"] != 0.0 {
		t.Errorf("a rehearsal that accepts it: got %v and %v, want one to be lost", line, err)
	}
	if line, err := redriven(t, "a", "--accept-lost"); err != nil || line["lifted"] != true || line["lost"] != 1.0 || line["repeated"] != 0.0 || line["applied"] != 0.0 {
		t.Errorf("accepted: got %v and %v, want one lost, and nothing repeated", line, err)
	}
	untouched("accepted")
	decided(t, 1, "parked redrive --accept-lost --other-projections", "a-2", `event "a-3"`)
	if got := seen(sandboxtest.Documents(t, db, "orders")["a"]); !slices.Equal(got, []int64{1}) {
		t.Errorf("a: seen %s, want it as it was", fmt.Sprint(got))
	}
}

// What a redrive of dead letters leaves halted can be accepted as any other halt, with
// a line in the ledger.
func TestDeadRedrive_GoesOnOverAGapThatIsAccepted(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	p := waiting(t, "acceptgap", database)
	onTopic(t, "acceptgap", database, counting)
	send(t, "acceptgap", happened("a", 1, 1)...)
	sees(t, db, "a", 1)
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	send(t, "acceptgap", happened("a", 3, 3)...)
	deadLetter(t, "acceptgap", "a")
	if lines, err := runCommand(t, "dlq", "redrive", "--all"); err == nil || len(lines) != 2 || lines[1]["reason"] != "version gap: version 3 follows 1" {
		t.Fatalf("got %v and %v, want it put back, and stopped at the gap", lines, err)
	}
	if line, err := redriven(t, "a", "--accept-gaps"); err == nil || !strings.Contains(fmt.Sprint(line["reason"]), "projector dlq redrive --all finishes it and lifts the halt, and takes the same --accept flags") {
		t.Errorf("parked redrive: got %v and %v, want it left to dlq redrive", line, err)
	}
	if _, err := runCommand(t, "dlq", "redrive", "--all", "--accept-gaps", "--dry-run"); err != nil || len(ledger(t)) != 1 {
		t.Errorf("dry run: got %v and %v, want nothing decided", err, ledger(t))
	}
	if lines, err := runCommand(t, "dlq", "redrive", "--all", "--accept-gaps"); err != nil || len(lines) != 1 || lines[0]["lifted"] != true || lines[0]["applied"] != 1.0 {
		t.Errorf("accepted: got %v and %v, want it applied and the halt lifted", lines, err)
	}
	sees(t, db, "a", 1, 3)
	decided(t, 2, "dlq redrive --accept-gaps", "a-3", "version 3 follows 1")
	if lines, err := runCommand(t, "dlq", "redrive", "--all", "--accept-gaps"); err != nil || len(lines) != 0 || len(ledger(t)) != 2 {
		t.Errorf("once more: got %v and %v, want nothing to decide", lines, err)
	}

	send(t, "acceptgap", happened("a", 5, 5)...)
	deadLetter(t, "acceptgap", "a")
	letters, err := runCommand(t, "dlq", "list")
	if err != nil || len(letters) != 1 {
		t.Fatalf("dlq list: got %v and %v, want one", letters, err)
	}
	if lines, err := runCommand(t, "dlq", "redrive", number(letters[0]), "--accept-gaps"); err != nil || len(lines) != 2 || lines[1]["lifted"] != true {
		t.Errorf("at once: got %v and %v, want it put back and applied", lines, err)
	}
	decided(t, 3, "dlq redrive --accept-gaps", "a-5", "version 5 follows 3")
}

// A halt that a killed dlq redrive has left ends, whatever became of what is parked
// under it.
func TestDeadRedrive_EndsAHaltWhoseMessagesAreGoneOrNotFollowed(t *testing.T) {
	db, _ := parkedThree(t, "acceptlost")
	set := func(collection, field string, value any) {
		t.Helper()
		if _, err := db.Collection(collection).UpdateMany(t.Context(), bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: field, Value: value}}}}); err != nil {
			t.Fatal(err)
		}
	}
	set("halted_aggregates", "reason", "a dead-lettered message is being put back (because)")
	set("parked_messages", "followedBy", bson.A{"gone"})
	if _, err := db.Collection("parked_messages").DeleteOne(t.Context(), bson.D{{Key: "_id.eventId", Value: "a-2"}}); err != nil {
		t.Fatal(err)
	}
	finish := func(accept ...string) (map[string]any, error) {
		t.Helper()
		lines, err := runCommand(t, slices.Concat([]string{"dlq", "redrive", "--all", "--other-projections"}, accept)...)
		if len(lines) != 1 {
			t.Fatalf("dlq redrive %v: got %v and %v, want one line", accept, lines, err)
		}
		return lines[0], err
	}
	if line, err := finish("--accept-unfollowed"); err == nil || !strings.Contains(fmt.Sprint(line["reason"]), "1 messages that were parked") {
		t.Errorf("what is gone: got %v and %v, want it refused", line, err)
	}
	if line, err := finish("--accept-lost"); err == nil || !strings.Contains(fmt.Sprint(line["reason"]), `projection "gone" followed`) {
		t.Errorf("what is not followed: got %v and %v, want it refused", line, err)
	}
	if line, err := finish("--accept-lost", "--accept-unfollowed"); err != nil || line["lifted"] != true || line["applied"] != 2.0 {
		t.Errorf("both accepted: got %v and %v, want the halt lifted", line, err)
	}
	last := ledger(t)
	if len(last) != 3 {
		t.Fatalf("the ledger: got %v, want a line for each", last)
	}
	decided(t, 3, "dlq redrive --accept-unfollowed --accept-lost --other-projections", "a-2", "1 messages that were parked", "a-3", `projection "gone"`)
}

// Names of the broker have no case: whoever writes one another way is the same
// subscription, and what it has parked is the group's own.
func TestScope_ASubscriptionIsTheSameHoweverItsNameIsWritten(t *testing.T) {
	_, database := servers.Mongo(t, nil)
	cfg := configured(t, "anycase", database)
	onTopic(t, "anycase", database, counting)
	before := start(t, cfg, parse(t))
	until(t, "the projector runs", func() bool { return strings.Contains(before.logs.String(), "taking sessions") })
	if err := before.stop(); err != nil {
		t.Fatal(err)
	}
	cfg.Topic, cfg.Subscription = "AnyCase", "Projector"
	p := start(t, cfg, parse(t))
	send(t, "anycase", event("a", 1, "Doubled", `{"n":"x"}`), event("a", 2, "Happened", `{}`))
	until(t, "they are parked", func() bool { return p.Status().Parked == 2 })
	if lines, err := runCommand(t, "parked", "list"); err != nil || len(lines) != 2 || lines[0]["foreign"] != nil {
		t.Errorf("parked list: got %v and %v, want them its own", lines, err)
	}
	if _, err := runCommand(t, "parked", "discard", "a", "a-1"); err != nil {
		t.Errorf("parked discard: %v", err)
	}
	for _, name := range []string{"projector", "PROJECTOR"} {
		t.Setenv("SERVICEBUS_SUBSCRIPTION", name)
		t.Setenv("SERVICEBUS_TOPIC", "ANYCASE")
		if _, err := runCommand(t, "parked", "list", "nobody"); err != nil {
			t.Errorf("parked list of subscription %q: %v", name, err)
		}
		if lines, err := runCommand(t, "parked", "redrive", "a", "--dry-run"); err != nil || len(lines) != 1 || lines[0]["would_apply"] != 1.0 {
			t.Errorf("parked redrive of subscription %q: got %v and %v, want one that would be applied", name, lines, err)
		}
	}
	if lines, err := runCommand(t, "parked", "redrive", "a"); err != nil || len(lines) != 1 || lines[0]["applied"] != 1.0 {
		t.Errorf("parked redrive: got %v and %v, want one applied", lines, err)
	}
}

// A transaction that a killed process has left open is in the way for a minute: that
// is said, and not that the database is away.
func TestRedrive_SaysThatATransactionIsInTheWay(t *testing.T) {
	db, _ := parkedThree(t, "intheway")
	session, err := db.Client().StartSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.EndSession(t.Context())
	if err := session.StartTransaction(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Collection("orders").UpdateOne(mongo.NewSessionContext(t.Context(), session), bson.D{{Key: "_id", Value: "a"}}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("READMODEL_TIMEOUT", "1s")
	line, err := redriven(t, "a")
	if err == nil || !strings.Contains(err.Error(), "another transaction is changing the same documents") || strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("got %v and %v, want what is in the way", line, err)
	}
	if err := session.AbortTransaction(t.Context()); err != nil {
		t.Fatal(err)
	}
	if line, err := redriven(t, "a"); err != nil || line["lifted"] != true {
		t.Errorf("afterwards: got %v and %v, want the halt lifted", line, err)
	}
}

// A discard removes what its line in the ledger names, and nothing that is parked
// after that was written.
func TestDiscard_RemovesWhatItHasNamedAlone(t *testing.T) {
	db, _ := parkedThree(t, "discardnamed")
	to, err := url.Parse(servers.MongoURI)
	if err != nil {
		t.Fatal(err)
	}
	k := &killer{texts: [][]byte{[]byte("insert"), []byte("projector_ledger")}, nth: 1, lives: true, kill: func() {
		if _, err := db.Collection("parked_messages").InsertOne(t.Context(), bson.D{
			{Key: "_id", Value: bson.D{{Key: "aggregateId", Value: "a"}, {Key: "sequence", Value: event("a", 3, "", "").Sequence}, {Key: "eventId", Value: "a-late"}}},
			{Key: "topic", Value: "discardnamed"},
			{Key: "subscription", Value: "projector"},
		}); err != nil {
			t.Error(err)
		}
	}}
	t.Setenv("READMODEL_MONGODB_URI", "mongodb://"+k.listen(t, to.Host)+"/?directConnection=true")
	lines, err := runCommand(t, "parked", "discard", "a", "--all", "--other-projections")
	if err != nil || len(lines) != 3 || !k.dead() {
		t.Errorf("got %v and %v, want the three that were parked", lines, err)
	}
	decided(t, 1, "parked discard --other-projections", "a-2", "a-3", "a-4")
	if left, err := runCommand(t, "parked", "list"); err != nil || len(left) != 1 || left[0]["event_id"] != "a-late" {
		t.Errorf("afterwards: got %v and %v, want the one that came later", left, err)
	}
}

// A command that is interrupted says so in its line of the ledger, which would look
// like one that was killed.
func TestLedger_ClosesTheLineOfAnInterruptedCommand(t *testing.T) {
	parkedThree(t, "interrupted")
	to, err := url.Parse(servers.MongoURI)
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	k := &killer{texts: [][]byte{[]byte("delete"), []byte("parked_messages")}, nth: 1, lives: true, kill: interrupt}
	direct := os.Getenv("READMODEL_MONGODB_URI")
	t.Setenv("READMODEL_MONGODB_URI", "mongodb://"+k.listen(t, to.Host)+"/?directConnection=true")
	if _, err := command.Program("test").Do(ctx, []string{"parked", "discard", "a", "--all", "--other-projections"}, io.Discard, io.Discard); err == nil || !k.dead() {
		t.Errorf("got %v, want it interrupted", err)
	}
	t.Setenv("READMODEL_MONGODB_URI", direct)
	if lines := ledger(t); len(lines) != 1 || lines[0]["closed_at"] == nil || !strings.Contains(fmt.Sprint(lines[0]["error"]), "context canceled") {
		t.Errorf("got %v, want one line, closed, with the interruption", lines)
	}
}
