package app_test

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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
	cfg := configured(t, topic, database)
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
	lines, err := runCommand(t, slices.Concat([]string{"parked", "redrive"}, args, []string{"--other-projections"})...)
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

// What came again under a halt and was not applied before is no repeat once the halt
// was lost: a later event may have been applied over it.
func TestRedrive_NamesWhatWasOvertakenWhileItsHaltWasGone(t *testing.T) {
	const topic = "behindlost"
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	cfg := configured(t, topic, database)
	p := start(t, cfg, parse(t))
	onTopic(t, topic, database, counting)
	t.Setenv("PROJECTIONS", file(t, "mended.yaml", strings.ReplaceAll(counting, "data.n * 2", "100")))
	send(t, topic, event("a", 1, "Happened", `{}`), event("a", 3, "Doubled", `{"n":"x"}`))
	until(t, "the third is parked", func() bool { return p.Status().Parked == 1 })
	send(t, topic, event("a", 2, "Happened", `{}`))
	until(t, "the second is parked", func() bool { return p.Status().Parked == 2 })
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	lose(t, db, "halted_aggregates")
	// The fourth came while the halt was gone.
	fourth := event("a", 4, "Happened", `{}`)
	if _, err := db.Collection("orders").UpdateOne(t.Context(), bson.D{{Key: "_id", Value: "a"}}, bson.D{{Key: "$set", Value: bson.D{
		{Key: "_relay.sequence", Value: fourth.Sequence}, {Key: "_relay.eventId", Value: fourth.ID},
	}}}); err != nil {
		t.Fatal(err)
	}
	if line, err := redriven(t, "a"); err == nil || line["failed_event_id"] != "a-2" || !strings.Contains(fmt.Sprint(line["reason"]), "--accept-lost") {
		t.Errorf("got %v and %v, want it stopped at the second", line, err)
	}
	if line, err := redriven(t, "a", "--accept-lost"); err != nil || line["lifted"] != true {
		t.Errorf("accepted: got %v and %v, want the halt lifted", line, err)
	}
	decided(t, 1, "parked redrive --accept-lost --other-projections", "a-2", "a-3")
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
	if !strings.Contains(scraped(t, p), "projector_halts_put_back_total 1\n") {
		t.Error("the metrics do not say so")
	}
	if line, err := redriven(t, "a"); err != nil || line["applied"] != 3.0 || line["lifted"] != true {
		t.Errorf("got %v and %v, want three applied", line, err)
	}
}

func TestRedrive_WhatWasParkedAndIsGoneIsMissed(t *testing.T) {
	db, _ := parkedThree(t, "lostparked")
	if _, err := runCommand(t, "parked", "discard", "a", "a-3", "--other-projections"); err != nil {
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

// A halt that is put back knows what is parked under it.
func TestRedrive_WhatIsGoneUnderAHaltThatWasPutBackIsMissed(t *testing.T) {
	db, again := parkedThree(t, "kept")
	lose(t, db, "halted_aggregates")
	p := again()
	until(t, "the halt is back", func() bool { return p.Status().HaltsPutBack == 1 })
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Collection("parked_messages").DeleteOne(t.Context(), bson.D{{Key: "_id.eventId", Value: "a-2"}}); err != nil {
		t.Fatal(err)
	}
	line, err := redriven(t, "a")
	if why := fmt.Sprint(line["reason"]); err == nil || !strings.Contains(why, "1 messages that were parked") {
		t.Errorf("redrive: got %v and %v, want what is missing named", line, err)
	}
	if line, err := redriven(t, "a", "--accept-lost"); err != nil || line["lifted"] != true || line["applied"] != 2.0 {
		t.Errorf("accepted: got %v and %v, want what is left applied", line, err)
	}
}

// What an older release has discarded it has not counted at the halt; its ledger says so.
func TestRedrive_WhatAnOlderReleaseHasDiscardedIsNotMissed(t *testing.T) {
	db, _ := parkedThree(t, "olderdiscard")
	if _, err := db.Collection("parked_messages").DeleteOne(t.Context(), bson.D{{Key: "_id.eventId", Value: "a-2"}}); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	line := func(more ...bson.E) bson.D {
		return append(bson.D{{Key: "group", Value: ""}, {Key: "command", Value: "parked discard"}, {Key: "count", Value: 1}, {Key: "_id", Value: rand.Text()}}, more...)
	}
	of := func(aggregate string) bson.E {
		return bson.E{Key: "about", Value: bson.A{bson.D{{Key: "aggregate", Value: aggregate}, {Key: "event", Value: "a-2"}}}}
	}
	at, closed := bson.E{Key: "at", Value: now}, bson.E{Key: "closedAt", Value: now}
	for name, other := range map[string]bson.D{
		"of this release":            line(of("a"), at, closed, bson.E{Key: "counted", Value: true}),
		"of another aggregate":       line(of("b"), at, closed),
		"before the halt":            line(of("a"), closed, bson.E{Key: "at", Value: now.Add(-time.Hour)}),
		"that was killed":            line(of("a"), at),
		"that is no discard":         append(line(of("a"), at, closed)[2:], bson.E{Key: "group", Value: ""}, bson.E{Key: "command", Value: "halts resume"}),
		"of another group's command": append(line(of("a"), at, closed)[1:], bson.E{Key: "group", Value: "other"}),
	} {
		if _, err := db.Collection("projector_ledger").InsertOne(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		if got, err := redriven(t, "a"); err == nil || !strings.Contains(fmt.Sprint(got["reason"]), "1 messages") || !strings.Contains(fmt.Sprint(got["reason"]), "older release") {
			t.Errorf("with a line %s: got %v and %v, want one missing", name, got, err)
		}
	}
	if _, err := db.Collection("projector_ledger").InsertOne(t.Context(), line(of("a"), at, closed)); err != nil {
		t.Fatal(err)
	}
	if got, err := redriven(t, "a"); err != nil || got["lifted"] != true || got["applied"] != 2.0 {
		t.Errorf("with its line: got %v and %v, want the other two applied", got, err)
	}
}

// Nobody has to redrive to learn that parked messages are gone.
func TestParked_OnesThatAreGoneAreSeen(t *testing.T) {
	db, again := parkedThree(t, "gone")
	if _, err := db.Collection("parked_messages").DeleteOne(t.Context(), bson.D{{Key: "_id.eventId", Value: "a-2"}}); err != nil {
		t.Fatal(err)
	}
	p := again()
	until(t, "it is seen", func() bool { return p.Status().ParkedGone == 1 })
	if _, metrics := answer(t, p, "/metrics"); !strings.Contains(metrics, "\nprojector_parked_gone 1\n") {
		t.Errorf("metrics: got %s, want what is gone counted", metrics)
	}
	if log := p.logs.String(); !strings.Contains(log, `"aggregate_ids":["a"]`) {
		t.Errorf("log: got %s, want the aggregate named", log)
	}
	if lines, err := runCommand(t, "status", "--json"); err != nil || lines[0]["parked_gone"] != 1.0 || !strings.Contains(fmt.Sprint(lines[0]["warnings"]), "that were parked are gone") {
		t.Errorf("status: got %v and %v, want a warning", lines, err)
	}
	for _, args := range [][]string{{"parked", "list"}, {"parked", "list", "a"}} {
		if lines, err := runCommand(t, args...); err == nil || !strings.Contains(err.Error(), `1 of the aggregates ["a"]`) || len(lines) != 2 {
			t.Errorf("%v: got %v and %v, want the two that are left, and the other missed", args, lines, err)
		}
	}
	if lines, err := runCommand(t, "parked", "list", "b"); err != nil || len(lines) > 0 {
		t.Errorf("of another aggregate: got %v and %v, want nothing", lines, err)
	}
	if line, err := redriven(t, "a", "--accept-lost"); err != nil || line["lifted"] != true {
		t.Fatalf("accepted: got %v and %v, want the halt lifted", line, err)
	}
	if lines, err := runCommand(t, "parked", "list"); err != nil || len(lines) > 0 {
		t.Errorf("after it: got %v and %v, want nothing", lines, err)
	}
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
	lines, err := runCommand(t, "dlq", "redrive", "--all", "--other-projections")
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

// Without its note, nothing would tell that an aggregate whose halt was deleted with all
// that was parked under it was ever halted.
func TestProjector_PutsTheHaltBackThatWasDeletedWithWhatWasParked(t *testing.T) {
	db, again := parkedThree(t, "bothlost")
	lose(t, db, "halted_aggregates")
	lose(t, db, "parked_messages")
	for _, args := range [][]string{{"a", "--dry-run"}, {"--all", "--dry-run"}} {
		if line, err := redriven(t, args...); err == nil || line["failed_event_id"] != "a-2" || !strings.Contains(fmt.Sprint(line["reason"]), "deleted with") {
			t.Errorf("redrive %v: got %v and %v, want the event named that the aggregate was halted at", args, line, err)
		}
	}
	p := again()
	until(t, "the halt is back, and known of", func() bool {
		s := p.Status()
		return s.HaltsPutBack == 1 && s.ParkedGone == 1 && s.HaltedAggregates != nil && *s.HaltedAggregates == 1
	})
	send(t, "bothlost", event("a", 5, "Happened", `{}`))
	until(t, "the next is parked", func() bool { return p.Status().Parked == 1 })
	for _, args := range [][]string{{"a"}, {"--all"}} {
		line, err := redriven(t, args...)
		why := fmt.Sprint(line["reason"])
		if err == nil || line["failed_event_id"] != "a-2" || !strings.Contains(why, "START_AT=snapshot") || !strings.Contains(why, "--accept-lost") {
			t.Errorf("redrive %v: got %v and %v, want it stopped, and the ways back", args, line, err)
		}
	}
	if got := seen(sandboxtest.Documents(t, db, "orders")["a"]); !slices.Equal(got, []int64{1}) {
		t.Errorf("a has seen %v, want nothing applied over what is gone", got)
	}
	if line, err := redriven(t, "a", "--accept-lost"); err != nil || line["lifted"] != true || line["applied"] != 1.0 {
		t.Errorf("accepted: got %v and %v, want what is left applied", line, err)
	}
	decided(t, 1, "parked redrive --accept-lost --other-projections", "a-2", "deleted with")
	if line, err := runCommand(t, "parked", "redrive", "--all", "--other-projections"); err != nil || len(line) > 0 {
		t.Errorf("once more: got %v and %v, want nothing halted", line, err)
	}
}

// An older release notes no halts, and positions may be of another backup: what is
// halted is noted by whoever looks.
func TestProjector_NotesTheHaltsThatNobodyHasNoted(t *testing.T) {
	db, again := parkedThree(t, "unnoted")
	notes := bson.D{{Key: "_id.note", Value: "halt"}}
	noted := func() bool { return db.Collection("applied_positions").FindOne(t.Context(), notes).Err() == nil }
	if _, err := db.Collection("applied_positions").DeleteMany(t.Context(), notes); err != nil {
		t.Fatal(err)
	}
	again()
	until(t, "the halt is noted", noted)
	if _, err := redriven(t, "a"); err != nil {
		t.Fatal(err)
	}
	if noted() {
		t.Error("the halt is lifted, and still noted")
	}
}
