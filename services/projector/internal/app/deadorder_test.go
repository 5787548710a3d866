package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"changerelay/services/projector/internal/sandboxtest"
)

// Nothing is put back over an earlier dead letter of its aggregate that is refused:
// that one could never be applied any more. Once it can be, all are, in order.
func TestDeadRedrive_PutsNothingBackOverAnEarlierOneThatItRefuses(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	cfg := configured(t, "deadorder", database)
	onTopic(t, "deadorder", database, counting)
	// The second one of a fails its projection, the second one of b is of a
	// contract that nobody here reads.
	send(t, "deadorder", event("a", 1, "Happened", `{}`), event("a", 2, "Doubled", `{"n":"x"}`), event("a", 3, "Happened", `{}`), event("b", 1, "Happened", `{}`))
	sandboxtest.Send(t, servers, "deadorder", later(t, event("b", 2, "Happened", `{}`)))
	send(t, "deadorder", event("b", 3, "Happened", `{}`))
	for range 3 {
		deadLetter(t, "deadorder", "a")
		deadLetter(t, "deadorder", "b")
	}
	p := start(t, cfg, parse(t))
	until(t, "the dead letters are looked at", func() bool { return p.Status().DeadLetters != nil })

	want := "map[a-1:put back a-2:refused a-3:refused b-1:put back b-2:refused b-3:refused]"
	for _, more := range [][]string{{"--dry-run"}, {}} {
		lines, err := runCommand(t, append([]string{"dlq", "redrive", "--all"}, more...)...)
		fates := map[string]any{}
		for _, line := range lines {
			if id, is := line["message_id"]; is {
				fates[id.(string)] = line["fate"]
			}
			if line["message_id"] == "a-3" && !strings.Contains(fmt.Sprint(line["reason"]), `event "a-2"`) {
				t.Errorf("%v: the reason of a-3 does not name the earlier one: %v", more, line["reason"])
			}
		}
		if err == nil || fmt.Sprint(fates) != want {
			t.Errorf("%v: got %v and %v, want %s", more, fates, err, want)
		}
	}
	for _, aggregate := range []string{"a", "b"} {
		if got := seen(sandboxtest.Documents(t, db, "orders")[aggregate]); !slices.Equal(got, []int64{1}) {
			t.Errorf("%s: seen %v, want what comes before the one that is refused", aggregate, got)
		}
	}
	if halted := sandboxtest.Documents(t, db, "halted_aggregates"); len(halted) != 0 {
		t.Errorf("%d aggregates are still halted, want none", len(halted))
	}

	t.Setenv("PROJECTIONS", file(t, "mended.yaml", strings.ReplaceAll(counting, "data.n * 2", "100")))
	if lines, err := runCommand(t, "dlq", "redrive", "--all", "--other-projections"); err == nil {
		t.Errorf("after a is mended: got %v and no error, want b refused", lines)
	}
	a := sandboxtest.Documents(t, db, "orders")["a"]
	if got := seen(a); !slices.Equal(got, []int64{1, 3}) || a.Lookup("events").AsInt64() != 102 {
		t.Errorf("after a is mended: got %s, want all three applied", a)
	}
}
