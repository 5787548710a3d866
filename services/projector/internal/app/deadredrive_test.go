package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/sandboxtest"
)

// What the broker has dead-lettered is put back where nothing later is applied,
// and else it is said why it cannot be, and stays where it is.
func TestDeadRedrive_PutsBackInOrderOrSaysWhyNot(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	cfg := configured(t, "redead", database)
	onTopic(t, "redead", database, counting)
	// Of a the first two are dead-lettered and nothing follows; of b the first, and
	// others follow; c is of nobody.
	send(t, "redead", happened("a", 1, 2)...)
	deadLetter(t, "redead", "a")
	deadLetter(t, "redead", "a")
	send(t, "redead", happened("b", 1, 1)...)
	deadLetter(t, "redead", "b")
	send(t, "redead", happened("b", 2, 3)...)
	sandboxtest.Send(t, servers, "redead", contract.Message{ID: "foreign", SessionID: "f", Body: []byte("hello")})
	p := start(t, cfg, parse(t))
	until(t, "what is left is applied", func() bool { return p.Status().Applied == 2 && p.Status().DeadLettered == 1 })

	numbers := map[string]string{}
	list := func() (ids []string) {
		lines, err := runCommand(t, "dlq", "list")
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			id := line["message_id"].(string)
			numbers[id] = fmt.Sprintf("%.0f", line["sequence_number"])
			ids = append(ids, id)
		}
		slices.Sort(ids)
		return ids
	}
	all := []string{"a-1", "a-2", "b-1", "foreign"}
	if got := list(); !slices.Equal(got, all) {
		t.Fatalf("dead letters: got %v, want %v", got, all)
	}
	fates := func(lines []map[string]any) map[string]string {
		fates := map[string]string{}
		for _, line := range lines {
			if id, is := line["message_id"]; is {
				fates[fmt.Sprint(id)] = fmt.Sprint(line["fate"])
			}
		}
		return fates
	}
	want := map[string]string{"a-1": "put back", "a-2": "put back", "b-1": "refused", "foreign": "refused"}
	lines, err := runCommand(t, "dlq", "redrive", "--all", "--dry-run")
	if err == nil || fmt.Sprint(fates(lines)) != fmt.Sprint(want) {
		t.Errorf("dry run: got %v and %v, want %v", lines, err, want)
	}
	if got := list(); !slices.Equal(got, all) || len(sandboxtest.Documents(t, db, "halted_aggregates")) != 0 {
		t.Errorf("the dry run has changed something: %v are left", got)
	}
	if lines, err := runCommand(t, "dlq", "redrive", numbers["a-2"]); err == nil || len(lines) != 0 || !strings.Contains(err.Error(), "dead letter "+numbers["a-1"]) {
		t.Errorf("the later one first: got %v and %v, want it refused for the earlier one", lines, err)
	}
	if _, err := runCommand(t, "dlq", "redrive", "99999"); err == nil {
		t.Error("one that is not there: got no error")
	}

	lines, err = runCommand(t, "dlq", "redrive", "--all")
	if err == nil || fmt.Sprint(fates(lines)) != fmt.Sprint(want) {
		t.Errorf("redrive: got %v and %v, want %v", lines, err, want)
	}
	why := fmt.Sprint(lines)
	for _, part := range []string{`aggregate "b"`, `event "b-1"`, `event "b-3"`, "START_AT=snapshot", "of no aggregate"} {
		if !strings.Contains(why, part) {
			t.Errorf("the reasons do not say %q: %s", part, why)
		}
	}
	if got := list(); !slices.Equal(got, []string{"b-1", "foreign"}) {
		t.Errorf("dead letters afterwards: got %v, want those that were refused", got)
	}
	if halted := sandboxtest.Documents(t, db, "halted_aggregates"); len(halted) != 0 {
		t.Errorf("%d aggregates are still halted, want none", len(halted))
	}
	send(t, "redead", happened("a", 3, 3)...)
	until(t, "the projector goes on", func() bool { return slices.Equal(seen(sandboxtest.Documents(t, db, "orders")["a"]), []int64{1, 2, 3}) })
	if got := seen(sandboxtest.Documents(t, db, "orders")["b"]); !slices.Equal(got, []int64{2, 3}) {
		t.Errorf("b: seen %v, want it as it was", got)
	}
}
