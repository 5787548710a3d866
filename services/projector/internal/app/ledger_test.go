package app_test

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/sandboxtest"
)

// decided checks the last line of the ledger: what was decided, that it is closed,
// by whom, and that it names what it is about.
func decided(t *testing.T, lines int, command string, names ...string) {
	t.Helper()
	all := ledger(t)
	if len(all) != lines {
		t.Fatalf("after %s the ledger has %d lines, want %d: %v", command, len(all), lines, all)
	}
	last := all[lines-1]
	if last["command"] != command || last["closed_at"] == nil || last["error"] != nil || !strings.Contains(fmt.Sprint(last["by"]), "@") || last["at"] == nil {
		t.Errorf("after %s: got %v, want a closed line of it", command, last)
	}
	for _, name := range names {
		if !strings.Contains(fmt.Sprint(last["about"], last["why"]), name) {
			t.Errorf("after %s: got %v and %v, want %q named", command, last["about"], last["why"], name)
		}
	}
}

// Whatever leaves events out, or accepts what nobody has proven, is in the ledger.
func TestLedger_HasALineForEachDecision(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	cfg := configured(t, "ledger", database)
	cfg.OnGap, cfg.GapWait = "wait", 0
	p := start(t, cfg, parse(t))
	onTopic(t, "ledger", database, counting)
	send(t, "ledger", event("a", 1, "Happened", `{}`), event("a", 3, "Happened", `{}`), event("b", 1, "Doubled", `{"n":"x"}`), event("b", 2, "Unheard", `{}`))
	sandboxtest.Send(t, servers, "ledger", contract.Message{ID: "foreign", SessionID: "f", Body: []byte("hello")})
	until(t, "they are parked and dead-lettered", func() bool { return p.Status().Parked == 3 && p.Status().DeadLettered == 1 })
	if _, err := runCommand(t, "ledger"); err != nil {
		t.Errorf("an empty ledger: got %v, want nothing", err)
	}
	for _, args := range [][]string{{"parked", "discard", "b", "--all", "--dry-run"}, {"halts", "resume", "--dry-run"}, {"dlq", "discard", "--all", "--dry-run"}, {"parked", "redrive", "a", "--accept-gaps", "--dry-run"}} {
		if _, err := runCommand(t, args...); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
	if lines := ledger(t); len(lines) != 0 {
		t.Errorf("after rehearsals: got %v, want no line", lines)
	}
	run := func(args ...string) {
		t.Helper()
		if _, err := runCommand(t, args...); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
	run("halts", "resume")
	decided(t, 1, "halts resume", "b-1")
	run("halts", "resume")
	run("parked", "redrive", "a", "--accept-gaps")
	decided(t, 2, "parked redrive --accept-gaps", "a-3", "version 3 follows 1")
	run("parked", "discard", "b", "b-1")
	decided(t, 3, "parked discard", "b-1", "version:1")
	// What is named before it is done is not counted again when it is.
	if last := ledger(t)[2]; last["count"] != 1.0 {
		t.Errorf("a discard of one: got %v, want it counted once", last)
	}
	if _, err := db.Collection(projection.ParkedMessages).UpdateMany(t.Context(), bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "followedBy", Value: bson.A{"gone"}}}}}); err != nil {
		t.Fatal(err)
	}
	run("parked", "redrive", "--all", "--accept-unfollowed")
	decided(t, 4, "parked redrive --accept-unfollowed", "b-2", "gone")
	run("dlq", "discard", "--all")
	decided(t, 5, "dlq discard", "foreign", "ForeignMessage")
	run("dlq", "discard", "--all")
	decided(t, 5, "dlq discard")
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	next := start(t, cfg, parse(t))
	until(t, "the status shows the ledger", func() bool {
		s := next.Status()
		return s.Ledger != nil && s.Ledger.Lines == 5 && s.Ledger.Latest.Command == "dlq discard"
	})
	if !strings.Contains(scraped(t, next), "projector_ledger_lines 5\n") {
		t.Error("no projector_ledger_lines 5 in the metrics")
	}
}

// A switch that something speaks against is in the ledger, with what that is.
func TestLedger_HasALineForAForcedSwitch(t *testing.T) {
	v := newVersions(t)
	v.second(t, "versions", "missing", 0)
	switchTo(t, "orders", "2", "--force")
	decided(t, 1, "switch orders --to 2 --force", "cannot be looked at")
}

// Where the line cannot be written nothing is done.
func TestLedger_WithoutALineNothingIsDone(t *testing.T) {
	v := newVersions(t)
	v.second(t, "versions", "missing", 0)
	db := v.client.Database(v.database)
	if err := db.Collection(projection.Decisions).Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := db.CreateView(t.Context(), projection.Decisions, "orders_v2", bson.A{}); err != nil {
		t.Fatal(err)
	}
	lines, err := runCommand(t, "switch", "orders", "--to", "2", "--force")
	if err == nil || len(lines) > 0 || !strings.Contains(err.Error(), projection.Decisions) {
		t.Errorf("a switch without a ledger: got %v and %v, want an error that names it", lines, err)
	}
	live, err := runCommand(t, "versions")
	if err != nil || len(live) == 0 {
		t.Fatalf("versions: got %v and %v, want those of both projections", live, err)
	}
	for _, state := range live {
		if state["live"] != (state["version"] == 1.0) {
			t.Errorf("afterwards: got %v, want readers to see version 1", state)
		}
	}
}
