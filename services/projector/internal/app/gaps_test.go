package app_test

import (
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/sandboxtest"
)

// waiting starts a projector with ON_GAP=wait that halts at a gap at once.
func waiting(t *testing.T, topic, database string) *projector {
	t.Helper()
	cfg := configured(t, topic, database)
	cfg.OnGap, cfg.GapWait = "wait", 0
	return start(t, cfg, parse(t))
}

// sees waits until an aggregate's read document has seen versions.
func sees(t *testing.T, db *mongo.Database, aggregate string, versions ...int64) {
	t.Helper()
	until(t, "the versions are applied", func() bool {
		return slices.Equal(seen(sandboxtest.Documents(t, db, "orders")[aggregate]), versions)
	})
}

// An aggregate whose version is lost is no new one where its document shows which it has.
func TestGaps_AVersionThatIsLostIsTakenFromTheDocument(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	p := waiting(t, "lostnote", database)
	send(t, "lostnote", happened("a", 1, 3)...)
	sees(t, db, "a", 1, 2, 3)
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	earlier, err := db.Collection(projection.Processes).UpdateOne(t.Context(), bson.D{{Key: "_id", Value: "feed"}, {Key: "notedSince", Value: bson.D{{Key: "$type", Value: "date"}}}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "notedSince", Value: time.Now().Add(-time.Hour)}}}})
	if err != nil || earlier.ModifiedCount != 1 {
		t.Fatalf("got %+v and %v, want it said since when versions are noted", earlier, err)
	}
	lose(t, db, projection.Positions)
	p = waiting(t, "lostnote", database)
	send(t, "lostnote", happened("a", 5, 5)...)
	until(t, "what follows the gap is parked", func() bool { return p.Status().Parked == 1 })
	send(t, "lostnote", happened("a", 4, 4)...)
	sees(t, db, "a", 1, 2, 3, 4, 5)
}

// Whether gaps matter is for the projectors to say, not for the environment of a
// command.
func TestGaps_ACommandStopsAtAGapWhereTheProjectorsDo(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	p := waiting(t, "gaps", database)
	onTopic(t, "gaps", database, counting)
	send(t, "gaps", happened("a", 1, 1)...)
	send(t, "gaps", happened("a", 3, 4)...)
	until(t, "what follows the gap is parked", func() bool { return p.Status().Parked == 2 })
	for _, environment := range []string{"", "report", "wait"} {
		t.Setenv("ON_GAP", environment)
		for _, args := range [][]string{{"a"}, {"--all"}, {"a", "--dry-run"}, {"--all", "--dry-run"}} {
			lines, err := runCommand(t, slices.Concat([]string{"parked", "redrive"}, args)...)
			if err == nil || len(lines) != 1 || lines[0]["failed_event_id"] != "a-3" || lines[0]["reason"] != "version gap: version 3 follows 1" {
				t.Errorf("parked redrive %v with ON_GAP=%q: got %v and %v, want it to stop at the gap", args, environment, lines, err)
			}
		}
	}
	// Nor does it go on where an older release has started, which noted nothing.
	if _, err := db.Collection(projection.Processes).UpdateMany(t.Context(), bson.D{}, bson.D{{Key: "$unset", Value: bson.D{{Key: "onGap", Value: ""}}}}); err != nil {
		t.Fatal(err)
	}
	if lines, err := runCommand(t, "parked", "redrive", "a"); err == nil || len(lines) != 1 || lines[0]["failed_event_id"] != "a-3" {
		t.Errorf("of an older release: got %v and %v, want it to stop at the gap", lines, err)
	}
	lines, err := runCommand(t, "parked", "redrive", "a", "--accept-gaps", "--dry-run")
	if err != nil || len(lines) != 1 || lines[0]["would_apply"] != 2.0 {
		t.Errorf("a rehearsal that accepts the gap: got %v and %v, want two to be applied", lines, err)
	}
	sees(t, db, "a", 1)
	send(t, "gaps", happened("a", 2, 2)...)
	sees(t, db, "a", 1, 2, 3, 4)
}
