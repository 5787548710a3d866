package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/sandboxtest"
)

// sourceTopics are those of the tests of sources.
var sourceTopics = []string{"sources-two", "sources-renamed", "sources-dead"}

// ofSource is an event as another source has it, under another id.
func ofSource(source string, e contract.Event) contract.Event {
	e.Source, e.ID = source, strings.ReplaceAll(source, "/", "")+"-"+e.ID
	return e
}

// Two sources have one aggregate id: an event of the second one is no repeat, however
// low its sequence, and no later one either. Its aggregate is halted, and nothing of
// either is lost.
func TestSources_AnEventOfAnotherSourceHaltsItsAggregate(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	p := start(t, configured(t, "sources-two", database), load(t, file(t, "projections.yaml", keyedElse)))
	onTopic(t, "sources-two", database, keyedElse)
	send(t, "sources-two", event("low", 1, "Happened", `{}`), event("low", 2, "Happened", `{}`), event("high", 1, "Happened", `{}`),
		event("key", 2, "Doubled", `{"n":1}`), event("fine", 1, "Happened", `{}`))
	until(t, "the first source's events are applied", func() bool { return p.Status().Applied == 5 })
	send(t, "sources-two",
		ofSource("/shop/others", event("low", 1, "Happened", `{}`)), event("low", 3, "Happened", `{}`),
		ofSource("/shop/others", event("high", 2, "Happened", `{}`)),
		ofSource("/shop/others", event("key", 1, "Doubled", `{"n":1}`)),
		ofSource("/shop/others", event("own", 1, "Happened", `{}`)))
	until(t, "what is of two sources is parked", func() bool { return p.Status().Parked == 4 && p.Status().Applied == 6 })
	lines, err := runCommand(t, "parked", "list")
	if err != nil || len(lines) != 4 {
		t.Fatalf("parked list: got %v and %v, want four", lines, err)
	}
	for _, line := range lines {
		if line["failed"] == true && !strings.Contains(fmt.Sprint(line["reason"]), "the event is of another source, /shop/others: what is applied of the aggregate is of /shop/events") {
			t.Errorf("parked is %v, want both sources named", line)
		}
	}
	if lines, err := runCommand(t, "sources", "list"); err != nil || len(lines) != 1 || lines[0]["halted"] != 3.0 {
		t.Errorf("sources list: got %v and %v, want three halted", lines, err)
	}
	if lines, err := runCommand(t, "status", "--json"); err != nil || !strings.Contains(fmt.Sprint(lines), "3 of the halted aggregates have events of two sources, such as") {
		t.Errorf("status: got %v and %v, want it to warn", lines, err)
	}
	if lines, err := runCommand(t, "doctor", "--json"); err == nil || !strings.Contains(fmt.Sprint(lines), "has 3 aggregates halted for events of another source") {
		t.Errorf("doctor: got %v and %v, want it to find them", lines, err)
	}
	for _, args := range [][]string{{"high"}, {"high", "--dry-run"}, {"low"}, {"key"}} {
		if line, err := redriven(t, args...); err == nil || !strings.Contains(fmt.Sprint(line["reason"]), "is of another source") {
			t.Errorf("a redrive of %v: got %v and %v, want it to stop there", args, line, err)
		}
	}
	// It was a mistake: the second source's events are given up, and the first goes on.
	for aggregate, id := range map[string]string{"low": "shopothers-low-1", "high": "shopothers-high-2", "key": "shopothers-key-1"} {
		if _, err := runCommand(t, "parked", "discard", aggregate, id, "--other-projections"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := runCommand(t, "parked", "redrive", "--all", "--other-projections"); err != nil {
		t.Fatal(err)
	}
	send(t, "sources-two", event("high", 2, "Happened", `{}`))
	until(t, "the first source goes on", func() bool {
		documents := sandboxtest.Documents(t, db, "orders")
		return slices.Equal(seen(documents["low"]), []int64{1, 2, 3}) && slices.Equal(seen(documents["high"]), []int64{1, 2}) &&
			slices.Equal(seen(documents["own"]), []int64{1})
	})
	if got := fmt.Sprint(sandboxtest.Documents(t, db, "all")["all"].Lookup("events")); !strings.Contains(got, `"1"`) {
		t.Errorf("the keyed document counts %s, want one event", got)
	}
}

// A collection was renamed: one word of an operator has the events under the new name
// follow those under the old one, in all aggregates. Those under the new name that are
// the same events are repeats.
func TestSources_OneThatContinuesAnotherGoesOnOnceThatIsSaid(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	p := start(t, configured(t, "sources-renamed", database), load(t, file(t, "projections.yaml", keyedElse)))
	onTopic(t, "sources-renamed", database, keyedElse)
	renamed := func(e contract.Event) contract.Event { return ofSource("/shop/events_2", e) }
	send(t, "sources-renamed", event("a", 1, "Happened", `{}`), event("a", 2, "Doubled", `{"n":1}`), event("b", 1, "Happened", `{}`), event("c", 1, "Doubled", `{"n":1}`))
	until(t, "what was before is applied", func() bool { return p.Status().Applied == 4 })
	// One that an older release has applied has no source, and goes on with any.
	if _, err := db.Collection("orders").UpdateByID(t.Context(), "b", bson.D{{Key: "$unset", Value: bson.D{{Key: "_relay.source", Value: ""}}}}); err != nil {
		t.Fatal(err)
	}
	send(t, "sources-renamed", renamed(event("a", 2, "Doubled", `{"n":1}`)), renamed(event("a", 3, "Doubled", `{"n":1}`)), renamed(event("b", 2, "Happened", `{}`)))
	until(t, "the renamed one's are parked", func() bool { return p.Status().Parked == 2 && p.Status().Applied == 5 })
	word := []string{"sources", "continue", "--from", "/shop/events", "--to", "/shop/events_2", "--other-projections"}
	if _, err := runCommand(t, word...); err == nil || !strings.Contains(err.Error(), "--why") {
		t.Errorf("without a reason: got %v, want it refused", err)
	}
	word = append(word, "--why", "it was renamed")
	if lines, err := runCommand(t, append(word, "--dry-run")...); err != nil || len(lines) != 1 || lines[0]["changed"] != false || lines[0]["halted"] != 1.0 {
		t.Errorf("a dry run: got %v and %v", lines, err)
	}
	if line, err := redriven(t, "a"); err == nil || line["lifted"] != false {
		t.Errorf("a redrive before it is said: got %v and %v, want it to stop", line, err)
	}
	if lines, err := runCommand(t, word...); err != nil || len(lines) != 1 || lines[0]["changed"] != true || lines[0]["next"] != "projector parked redrive --all" {
		t.Errorf("sources continue: got %v and %v", lines, err)
	}
	if line, err := redriven(t, "--all"); err != nil || line["repeated"] != 1.0 || line["applied"] != 1.0 || line["lifted"] != true {
		t.Errorf("the redrive: got %v and %v, want a repeat and one that is applied", line, err)
	}
	send(t, "sources-renamed", renamed(event("a", 4, "Happened", `{}`)), renamed(event("c", 1, "Doubled", `{"n":1}`)), renamed(event("c", 2, "Doubled", `{"n":1}`)),
		event("c", 1, "Doubled", `{"n":1}`))
	until(t, "the renamed one goes on", func() bool { return p.Status().Applied == 7 && p.Status().Repeated == 2 })
	documents := sandboxtest.Documents(t, db, "orders")
	if source := documents["a"].Lookup("_relay", "source").StringValue(); source != "/shop/events_2" || !slices.Equal(seen(documents["a"]), []int64{1, 4}) {
		t.Errorf("the document is of %s and has %v", source, seen(documents["a"]))
	}
	if got := fmt.Sprint(sandboxtest.Documents(t, db, "all")["all"].Lookup("events")); !strings.Contains(got, `"4"`) {
		t.Errorf("the keyed document counts %s, want four events", got)
	}
	if lines, err := runCommand(t, "sources", "list"); err != nil || lines[0]["halted"] != 0.0 {
		t.Errorf("sources list: got %v and %v, want none halted", lines, err)
	}
	// What is of the earlier name, and above what follows it, is of two sources again.
	send(t, "sources-renamed", event("c", 3, "Doubled", `{"n":1}`))
	until(t, "what comes late of the old name is parked", func() bool { return p.Status().Parked == 3 })
	if lines, err := runCommand(t, "ledger"); err != nil || len(lines) != 1 || !strings.HasPrefix(fmt.Sprint(lines[0]["command"]), "sources continue --from /shop/events --to /shop/events_2") {
		t.Errorf("the ledger has %v and %v", lines, err)
	}
	separate := slices.Clone(word)
	separate[1] = "separate"
	if lines, err := runCommand(t, separate...); err != nil || len(lines) != 1 || lines[0]["changed"] != true {
		t.Errorf("sources separate: got %v and %v", lines, err)
	}
	if lines, err := runCommand(t, "sources", "list"); err != nil || len(lines) != 1 || len(lines[0]["continuations"].([]any)) != 0 {
		t.Errorf("sources list: got %v and %v, want nothing said", lines, err)
	}
}

// A dead letter of another source stays where it is, and holds up nothing.
func TestSources_ADeadLetterOfAnotherSourceIsNotPutBack(t *testing.T) {
	_, database := servers.Mongo(t, nil)
	cfg := configured(t, "sources-dead", database)
	onTopic(t, "sources-dead", database, counting)
	send(t, "sources-dead", ofSource("/shop/others", event("a", 1, "Happened", `{}`)))
	deadLetter(t, "sources-dead", "a")
	p := start(t, cfg, parse(t))
	send(t, "sources-dead", event("a", 1, "Happened", `{}`), event("a", 2, "Happened", `{}`))
	until(t, "the other source's events are applied", func() bool { return p.Status().Applied == 2 })
	lines, err := runCommand(t, "dlq", "redrive", "--all")
	if err == nil || len(lines) == 0 || !strings.Contains(fmt.Sprint(lines[0]["reason"]), "is of another source, /shop/others") {
		t.Errorf("dlq redrive: got %v and %v, want it refused for its source", lines, err)
	}
	send(t, "sources-dead", event("a", 3, "Happened", `{}`))
	until(t, "the aggregate goes on", func() bool { return p.Status().Applied == 3 })
}
