package app_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// projector status tells from any machine which projectors there are, and what
// wants an operator.
func TestStatus_TellsOfTheGroupFromAnyMachine(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	cfg := configured(t, "group", database)
	onTopic(t, "group", database, counting)
	if _, err := runCommand(t, "status", "--json"); err == nil || !strings.Contains(err.Error(), "nothing is known here") {
		t.Errorf("where no projector has started: got %v, want it said", err)
	}
	p := start(t, cfg, parse(t))
	send(t, "group", event("a", 1, "Happened", `{}`), event("b", 1, "Doubled", `{"n":"x"}`), event("b", 2, "Happened", `{}`))
	until(t, "one aggregate to be halted", func() bool { return p.Status().Parked == 2 })
	if _, err := runCommand(t, "parked", "discard", "b", "b-2"); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for _, d := range []struct {
		collection string
		document   bson.D
	}{
		{"projector_processes", bson.D{{Key: "_id", Value: "killed"}, {Key: "instance", Value: "projector-9"}, {Key: "heartbeatAt", Value: now.Add(-time.Hour)}}},
		{"projector_processes", bson.D{{Key: "_id", Value: "killed before"}, {Key: "instance", Value: cfg.InstanceID}, {Key: "heartbeatAt", Value: now.Add(-time.Hour)}}},
		{"projector_processes", bson.D{{Key: "_id", Value: "old"}, {Key: "instance", Value: "projector-8"}, {Key: "heartbeatAt", Value: now.Add(-48 * time.Hour)}}},
		{"projector_processes", bson.D{{Key: "_id", Value: "gone"}, {Key: "instance", Value: "projector-7"}, {Key: "heartbeatAt", Value: now.Add(-time.Hour)}, {Key: "stoppedAt", Value: now}}},
	} {
		if _, err := db.Collection(d.collection).InsertOne(t.Context(), d.document); err != nil {
			t.Fatal(err)
		}
	}
	lines, err := runCommand(t, "status", "--json")
	if err != nil || len(lines) != 1 {
		t.Fatalf("status: got %v and %v", lines, err)
	}
	view := lines[0]
	if fmt.Sprint(view["feed"]) != fmt.Sprintf("map[namespace:%s subscription:projector topic:group]", "127.0.0.1") || view["halted_aggregates"] != 1.0 || view["parked_messages"] != 1.0 {
		t.Errorf("got %v, want what feeds it, one aggregate halted and one message parked", view)
	}
	projectors := view["projectors"].([]any)
	if len(projectors) != 2 || projectors[0].(map[string]any)["lives"] != true || projectors[1].(map[string]any)["instance"] != "projector-9" || projectors[1].(map[string]any)["lives"] != false {
		t.Errorf("got projectors %v, want the one that lives, in the place of one that was killed, and another that was killed", projectors)
	}
	if ledger := view["ledger"].(map[string]any); ledger["lines"] != 1.0 || ledger["latest"].(map[string]any)["command"] != "parked discard" {
		t.Errorf("got ledger %v, want the discard", ledger)
	}
	if warnings := fmt.Sprint(view["warnings"]); strings.Contains(warnings, cfg.InstanceID) || !strings.Contains(warnings, "projector-9 has said nothing since") || !strings.Contains(warnings, "1 aggregates are halted, with 1 messages parked: see projector parked list") {
		t.Errorf("got warnings %s", warnings)
	}
	if _, err := db.Collection("projector_ledger").UpdateMany(t.Context(), bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "closedAt", Value: nil}}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Collection("projector_processes").UpdateMany(t.Context(), bson.D{{Key: "heartbeatAt", Value: bson.D{{Key: "$exists", Value: true}}}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "stoppedAt", Value: now}}}}); err != nil {
		t.Fatal(err)
	}
	lines, err = runCommand(t, "status", "--json")
	if err != nil || len(lines) != 1 {
		t.Fatalf("status: got %v and %v", lines, err)
	}
	if warnings := fmt.Sprint(lines[0]["warnings"]); !strings.Contains(warnings, "no projector of the group lives") || !strings.Contains(warnings, "parked discard of") {
		t.Errorf("got warnings %s, want that nobody lives, and a line that is not closed", warnings)
	}
}
