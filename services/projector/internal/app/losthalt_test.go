package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/projector/internal/sandboxtest"
)

// keyedToo counts in documents of aggregates, and in one of all of them.
const keyedToo = counting + `- name: all
  collection: all
  key: '"all"'
  on: {Doubled: {inc: {events: 1}}, Happened: {inc: {events: 1}}}
`

// parkedThree stops a projector that has halted a at its second event, with the
// third and fourth behind it, and mends the projection.
func parkedThree(t *testing.T, topic string) (db *mongo.Database, again func() *projector) {
	t.Helper()
	client, database := servers.Mongo(t, nil)
	cfg := config(t, topic, database)
	path := file(t, "projections.yaml", keyedToo)
	p := start(t, cfg, load(t, path))
	onTopic(t, topic, database, keyedToo)
	send(t, topic, event("a", 1, "Happened", `{}`), event("a", 2, "Doubled", `{"n":"x"}`), event("a", 3, "Happened", `{}`), event("a", 4, "Happened", `{}`))
	until(t, "the messages are parked", func() bool { return p.Status().Parked == 3 })
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PROJECTIONS", file(t, "mended.yaml", strings.ReplaceAll(keyedToo, "data.n * 2", "100")))
	return client.Database(database), func() *projector { return start(t, cfg, load(t, path)) }
}

// lose deletes all documents of a collection.
func lose(t *testing.T, db *mongo.Database, collection string) {
	t.Helper()
	if _, err := db.Collection(collection).DeleteMany(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
}

// redriven redrives with the mended projections.
func redriven(t *testing.T, args ...string) (line map[string]any, err error) {
	t.Helper()
	lines, err := command(t, slices.Concat([]string{"parked", "redrive"}, args, []string{"--other-projections"})...)
	if len(lines) != 1 {
		t.Fatalf("redrive %v: got %v and %v, want one line", args, lines, err)
	}
	return lines[0], err
}

func TestRedrive_WhatWasAppliedOverWithoutAHaltIsNoRepeat(t *testing.T) {
	db, _ := parkedThree(t, "overtaken")
	lose(t, db, "halted_aggregates")
	// The fifth came while the halt was gone.
	fifth := event("a", 5, "Happened", `{}`)
	if _, err := db.Collection("orders").UpdateOne(t.Context(), bson.D{{Key: "_id", Value: "a"}}, bson.D{{Key: "$set", Value: bson.D{
		{Key: "_relay.sequence", Value: fifth.Sequence}, {Key: "_relay.eventId", Value: fifth.ID},
	}}}); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"a", "--dry-run"}, {"--all", "--dry-run"}, {"a"}, {"--all"}} {
		line, err := redriven(t, args...)
		why := fmt.Sprint(line["reason"])
		if err == nil || line["failed_event_id"] != "a-2" || !strings.Contains(why, `event "a-5"`) || !strings.Contains(why, "build the read model anew") || !strings.Contains(why, "--accept-lost") {
			t.Errorf("redrive %v: got %v and %v, want it stopped at the event that was applied over, and the way back", args, line, err)
		}
	}
	if halted, parked := len(sandboxtest.Documents(t, db, "halted_aggregates")), count(t, db, "parked_messages"); halted != 1 || parked != 3 {
		t.Errorf("afterwards: %d halted and %d parked, want the halt put back and all three kept", halted, parked)
	}
	if line, err := redriven(t, "a", "--accept-lost"); err != nil || line["lifted"] != true {
		t.Errorf("accepted: got %v and %v, want the halt lifted", line, err)
	}
	decided(t, 1, "parked redrive --accept-lost --other-projections", "a-2", "a-3", "a-4", `event "a-5"`)
}

func TestRedrive_WithoutAHaltPutsItBackAndAppliesInOrder(t *testing.T) {
	db, again := parkedThree(t, "halfhalt")
	lose(t, db, "halted_aggregates")
	line, err := redriven(t, "a")
	if err != nil || line["applied"] != 3.0 || line["lifted"] != true || line["halt_put_back"] != true {
		t.Errorf("got %v and %v, want three applied", line, err)
	}
	documents := sandboxtest.Documents(t, db, "orders")
	if got := seen(documents["a"]); !slices.Equal(got, []int64{1, 3, 4}) || documents["a"].Lookup("_relay", "halted").Type != 0 {
		t.Errorf("a: got %s, want it in order and without a mark", documents["a"])
	}
	// Readers of documents that many aggregates change filter by the mark, too.
	all := sandboxtest.Documents(t, db, "all")["all"]
	if all.Lookup("events").AsInt64() != 4 || all.Lookup("_relay", "halted").Type != 0 {
		t.Errorf("the document of all: got %s, want four events and no mark", all)
	}
	p := again()
	until(t, "the status says that nothing is parked", func() bool { n := p.Status().ParkedMessages; return n != nil && *n == 0 })
}

func TestProjector_PutsTheHaltBackOfWhatIsParked(t *testing.T) {
	db, again := parkedThree(t, "rehalt")
	lose(t, db, "halted_aggregates")
	p := again()
	until(t, "the halt is back", func() bool {
		s := p.Status()
		return s.HaltsPutBack == 1 && s.ParkedMessages != nil && *s.ParkedMessages == 3 && len(sandboxtest.Documents(t, db, "halted_aggregates")) == 1
	})
	if !strings.Contains(p.logs.String(), "their halt is gone") {
		t.Error("the log does not say so")
	}
	if line, err := redriven(t, "a"); err != nil || line["applied"] != 3.0 || line["lifted"] != true {
		t.Errorf("got %v and %v, want three applied", line, err)
	}
}

func TestRedrive_WhatWasParkedAndIsGoneIsMissed(t *testing.T) {
	db, _ := parkedThree(t, "lostparked")
	if _, err := command(t, "parked", "discard", "a", "a-3", "--other-projections"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Collection("parked_messages").DeleteOne(t.Context(), bson.D{{Key: "_id.eventId", Value: "a-2"}}); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"a", "--dry-run"}, {"a"}, {"--all"}} {
		line, err := redriven(t, args...)
		why := fmt.Sprint(line["reason"])
		if err == nil || line["failed_event_id"] != "a-2" || !strings.Contains(why, "1 messages that were parked") || !strings.Contains(why, "--accept-lost") {
			t.Errorf("redrive %v: got %v and %v, want what is missing named", args, line, err)
		}
	}
	if line, err := redriven(t, "a", "--accept-lost"); err != nil || line["lifted"] != true || line["applied"] != 1.0 {
		t.Errorf("accepted: got %v and %v, want what is left applied", line, err)
	}
	decided(t, 2, "parked redrive --accept-lost --other-projections", "a-2", "1 messages that were parked")
}

func TestRedrive_LeavesAHaltForDeadLettersToThem(t *testing.T) {
	db, _ := parkedThree(t, "forreturn")
	if _, err := db.Collection("halted_aggregates").UpdateOne(t.Context(), bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "reason", Value: "a dead-lettered message is being put back (because)"}}}}); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"a", "--dry-run"}, {"a"}, {"--all"}} {
		if line, err := redriven(t, args...); err == nil || !strings.Contains(fmt.Sprint(line["reason"]), "projector dlq redrive --all") {
			t.Errorf("redrive %v: got %v and %v, want it left to dlq redrive", args, line, err)
		}
	}
	if parked := count(t, db, "parked_messages"); parked != 3 {
		t.Errorf("%d are parked, want all three", parked)
	}
	lines, err := command(t, "dlq", "redrive", "--all", "--other-projections")
	if err != nil || len(lines) != 1 || lines[0]["lifted"] != true || lines[0]["applied"] != 3.0 {
		t.Errorf("dlq redrive: got %v and %v, want it finished", lines, err)
	}
}

func count(t *testing.T, db *mongo.Database, collection string) int64 {
	t.Helper()
	n, err := db.Collection(collection).CountDocuments(t.Context(), bson.D{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
