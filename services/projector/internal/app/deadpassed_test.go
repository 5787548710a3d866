package app_test

import (
	"testing"

	"changerelay/services/projector/internal/sandboxtest"
)

// one follows Happened alone, two Doubled alone: each only notes of what the other
// one follows that it has passed it.
const apart = `projections:
  - name: one
    version: 1
    collection: one
    on: {Happened: {inc: {events: 1}}}
  - name: two
    version: 1
    collection: two
    key: '"all"'
    on: {Doubled: {inc: {events: 1}}}
`

// A projection that has gone past an event which it does not follow misses nothing
// of it, and keeps it from no other one.
func TestDeadRedrive_WhoPassesAnEventByDoesNotHoldItUp(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	path := file(t, "apart.yaml", apart)
	cfg := configured(t, "deadpassed", database)
	onTopic(t, "deadpassed", database, apart)
	send(t, "deadpassed", happened("a", 1, 1)...)
	deadLetter(t, "deadpassed", "a")
	send(t, "deadpassed", event("a", 2, "Doubled", `{}`), event("b", 1, "Happened", `{}`))
	deadLetter(t, "deadpassed", "b")
	send(t, "deadpassed", event("b", 2, "Happened", `{}`))
	p := start(t, cfg, load(t, path))
	until(t, "what is left is applied", func() bool { return p.Status().Applied == 2 })

	// a-1 is missing in one, which has come to a-2 without following it. Of b one has
	// applied the later event.
	lines, err := runCommand(t, "dlq", "redrive", "--all")
	fates := map[string]string{}
	for _, line := range lines {
		if id, is := line["message_id"]; is {
			fates[id.(string)] = line["fate"].(string)
		}
	}
	if err == nil || fates["a-1"] != "put back" || fates["b-1"] != "refused" {
		t.Fatalf("got %v and %v, want a-1 put back and b-1 refused", lines, err)
	}
	for collection, key := range map[string]string{"one_v1": "a", "two_v1": "all"} {
		if got := sandboxtest.Documents(t, db, collection)[key].Lookup("events"); got.AsInt64() != 1 {
			t.Errorf("%s: got %s events, want 1", collection, got)
		}
	}
	if halted := sandboxtest.Documents(t, db, "halted_aggregates"); len(halted) != 0 {
		t.Errorf("%d aggregates are still halted, want none", len(halted))
	}
	if lines, err := runCommand(t, "dlq", "list"); err != nil || len(lines) != 1 || lines[0]["message_id"] != "b-1" {
		t.Errorf("dead letters afterwards: got %v and %v, want b-1 alone", lines, err)
	}
}
