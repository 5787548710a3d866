package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"changerelay/services/projector/internal/sandboxtest"
)

// A discard is a decision about an event: its message may come again, however late,
// and halts nothing. Another event of its place does.
func TestDiscard_AnEventThatComesAgainIsKnownAsDiscarded(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	cfg := configured(t, "discarded", database)
	p := start(t, cfg, parse(t))
	onTopic(t, "discarded", database, counting)
	bad := event("a", 2, "Doubled", `{"n":"x"}`)
	send(t, "discarded", event("a", 1, "Happened", `{}`), bad, event("a", 3, "Happened", `{}`))
	until(t, "the messages are parked", func() bool { return p.Status().Parked == 2 })
	if _, err := runCommand(t, "parked", "discard", "a", "a-2"); err != nil {
		t.Fatal(err)
	}

	send(t, "discarded", bad)
	until(t, "it has come again while its aggregate is halted", func() bool { return p.Status().Discarded == 1 })
	if lines, err := runCommand(t, "parked", "redrive", "a"); err != nil || len(lines) != 1 || lines[0]["lifted"] != true || lines[0]["applied"] != 1.0 {
		t.Errorf("redrive: got %v and %v, want the other one applied", lines, err)
	}
	send(t, "discarded", bad, event("a", 4, "Happened", `{}`))
	until(t, "it has come again after the halt, and the aggregate goes on", func() bool {
		return p.Status().Discarded == 2 && slices.Equal(seen(sandboxtest.Documents(t, db, "orders")["a"]), []int64{1, 3, 4})
	})
	if s := p.Status(); s.Parked != 2 || !strings.Contains(p.logs.String(), "an event that was discarded has come again") || !strings.Contains(scraped(t, p), "projector_discarded_total 2") {
		t.Errorf("got %+v, want nothing else parked, and log and metrics say why", s)
	}
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}

	// Dead-lettered it stays, and holds up none that comes after it.
	send(t, "discarded", bad, event("a", 5, "Happened", `{}`))
	deadLetter(t, "discarded", "a")
	deadLetter(t, "discarded", "a")
	for _, args := range [][]string{{"--all", "--dry-run"}, {"--all"}} {
		lines, err := runCommand(t, append([]string{"dlq", "redrive"}, args...)...)
		if err == nil || len(lines) < 2 || lines[0]["fate"] != "discarded" || lines[1]["fate"] != "put back" || !strings.Contains(fmt.Sprint(lines[0]["reason"]), "projector dlq discard") {
			t.Errorf("dlq redrive %v: got %v and %v, want the discarded one left and the next one put back", args, lines, err)
		}
	}
	if lines, err := runCommand(t, "dlq", "list"); err != nil || len(lines) != 1 || lines[0]["message_id"] != "a-2" {
		t.Errorf("dead letters afterwards: got %v and %v, want the discarded one", lines, err)
	}
	if halted := count(t, db, "halted_aggregates"); halted != 0 || !slices.Equal(seen(sandboxtest.Documents(t, db, "orders")["a"]), []int64{1, 3, 4, 5}) {
		t.Errorf("%d are halted, a is %s; want none, and the next one applied", halted, sandboxtest.Documents(t, db, "orders")["a"])
	}

	twin := bad
	twin.ID = "a-2-other"
	send(t, "discarded", twin)
	p = start(t, cfg, parse(t))
	until(t, "another event of the same sequence halts the aggregate", func() bool { return p.Status().Parked == 1 && count(t, db, "halted_aggregates") == 1 })
}
