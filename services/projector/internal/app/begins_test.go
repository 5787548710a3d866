package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
	"changerelay/services/projector/internal/sandboxtest"
)

// resentBy are events as a resend of that name sends them.
func resentBy(name string, events ...contract.Event) []contract.Event {
	events = slices.Clone(events)
	for i := range events {
		events[i].Resend = contract.Resend{ID: name}
	}
	return events
}

// A read model that began in the middle of an aggregate does not take for repeats what
// is resent from before: whoever asks is told that it lacks it.
func TestBegins_WhatIsResentFromBeforeIsCountedAndListed(t *testing.T) {
	for _, onGap := range []string{config.GapReport, config.GapWait} {
		t.Run(onGap, func(t *testing.T) {
			client, database := servers.Mongo(t, nil)
			topic := "begins-" + onGap
			cfg := configured(t, topic, database)
			cfg.OnGap = onGap
			path := file(t, "projections.yaml", keyedToo)
			p := start(t, cfg, load(t, path))
			send(t, topic, append(happened("whole", 1, 3), happened("a", 6, 6)...)...)
			until(t, "the live ones are applied", func() bool { return p.Status().Applied == 4 })
			send(t, topic, resentBy("x", append(happened("whole", 1, 3), happened("a", 1, 6)...)...)...)
			send(t, topic, happened("a", 7, 7)...)
			until(t, "all is dealt with", func() bool { return p.Status().Completed == 14 })
			if got := seen(sandboxtest.Documents(t, client.Database(database), "orders")["a"]); !slices.Equal(got, []int64{6, 7}) || p.Status().Parked != 0 {
				t.Errorf("got %v want that the aggregate goes on", got)
			}
			until(t, "it is noticed", func() bool { n := p.Status().Incomplete; return n != nil && *n == 2 }) // in each projection
			if !strings.Contains(scraped(t, p), "\nprojector_incomplete_aggregates 2\n") || strings.Count(p.logs.String(), "projector incomplete list") != 1 {
				t.Errorf("metrics or log do not say so, once:\n%s", p.logs)
			}
			onTopic(t, topic, database, keyedToo)
			if lines, err := runCommand(t, "status", "--json"); err != nil || !strings.Contains(fmt.Sprint(lines[0]["warnings"]), "2 aggregates lack what was resent of them") {
				t.Errorf("status: got %v and %v, want a warning", lines, err)
			}
			if lines, err := runCommand(t, "doctor", "--json"); err == nil || !strings.Contains(fmt.Sprint(lines), "lacks what was resent of 2 aggregates") {
				t.Errorf("doctor: got %v and %v, want a finding", lines, err)
			}
			lines, err := runCommand(t, "incomplete", "list")
			if err != nil || len(lines) != 2 {
				t.Fatalf("list: got %v and %v, want both projections", lines, err)
			}
			for _, line := range lines {
				got := fmt.Sprint(line["aggregate"], line["begins_at"], line["first_missing"], line["last_missing"])
				if want := "a0000000000000000006" + "0000000000000000001" + "0000000000000000005"; got != want {
					t.Errorf("list: got %s, want %s", got, want)
				}
			}
			if lines, err := runCommand(t, "incomplete", "accept", "a"); err != nil || len(lines) != 2 {
				t.Errorf("accept: got %v and %v, want both", lines, err)
			}
			until(t, "it is accepted", func() bool { return *p.Status().Incomplete == 0 })
			if lines, err := runCommand(t, "ledger"); err != nil || !strings.Contains(fmt.Sprint(lines), "incomplete accept") {
				t.Errorf("ledger: got %v and %v, want a line", lines, err)
			}
		})
	}
}

// A document that was removed and is begun anew by a live event is told from a whole one,
// until it is removed again and begun at its first event.
func TestBegins_ADocumentThatIsResentTooLateIsBegunAnew(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	p := start(t, configured(t, "begins-removed", database), load(t, file(t, "projections.yaml", counting)))
	send(t, "begins-removed", happened("a", 1, 5)...)
	until(t, "they are applied", func() bool { return p.Status().Applied == 5 })
	remove := func() {
		t.Helper()
		if _, err := db.Collection("orders").DeleteOne(t.Context(), map[string]string{"_id": "a"}); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	send(t, "begins-removed", happened("a", 6, 6)...)
	send(t, "begins-removed", resentBy("x", happened("a", 1, 6)...)...)
	until(t, "it is noticed", func() bool { n := p.Status().Incomplete; return n != nil && *n == 1 })
	remove()
	send(t, "begins-removed", resentBy("y", happened("a", 1, 6)...)...)
	until(t, "it is whole", func() bool { return *p.Status().Incomplete == 0 })
	if got := seen(sandboxtest.Documents(t, db, "orders")["a"]); !slices.Equal(got, []int64{1, 2, 3, 4, 5, 6}) {
		t.Errorf("got %v, want every event", got)
	}
}

// A live event from before the first one halts its aggregate: it is no repeat.
func TestBegins_ALiveEventFromBeforeHaltsItsAggregate(t *testing.T) {
	for _, kind := range []string{"own", "keyed"} {
		t.Run(kind, func(t *testing.T) {
			_, database := servers.Mongo(t, nil)
			topic := "begins-live-" + kind
			projections := map[string]string{"own": counting, "keyed": strings.Replace(keyedToo, counting, "projections:\n", 1)}[kind]
			p := start(t, configured(t, topic, database), load(t, file(t, "projections.yaml", projections)))
			send(t, topic, happened("c", 2, 2)...)
			until(t, "the later one is applied", func() bool { return p.Status().Applied == 1 })
			send(t, topic, append(happened("c", 1, 1), happened("c", 3, 3)...)...)
			until(t, "what follows waits", func() bool { return p.Status().Parked == 2 })
			onTopic(t, topic, database, projections)
			lines, err := runCommand(t, "parked", "redrive", "c")
			if err == nil || len(lines) != 1 || !strings.Contains(fmt.Sprint(lines[0]["reason"]), "cannot be applied in order any more") {
				t.Errorf("redrive: got %v and %v, want it refused", lines, err)
			}
			lines, err = runCommand(t, "parked", "list")
			if err != nil || len(lines) != 2 || !strings.Contains(fmt.Sprint(lines[0]["reason"]), readmodel.NotFromTheBeginning) ||
				!strings.Contains(fmt.Sprint(lines[0]["reason"]), "at sequence 0000000000000000002, and this event, of sequence 0000000000000000001") {
				t.Errorf("parked: got %v and %v, want the reason, with both sequences", lines, err)
			}
			if lines, err := runCommand(t, "parked", "discard", "c", "c-1"); err != nil {
				t.Errorf("discard: got %v and %v", lines, err)
			}
			if lines, err := runCommand(t, "parked", "redrive", "c"); err != nil || len(lines) != 1 || lines[0]["lifted"] != true {
				t.Errorf("redrive: got %v and %v, want the rest applied", lines, err)
			}
			send(t, topic, resentBy("x", happened("c", 1, 1)...)...)
			send(t, topic, happened("c", 4, 4)...)
			until(t, "the next one is applied", func() bool { return p.Status().Applied == 2 })
			if lines, err := runCommand(t, "incomplete", "list"); err != nil || len(lines) != 0 {
				t.Errorf("what was discarded: got %v and %v, want that nobody misses it", lines, err)
			}
		})
	}
}

// Where documents were emptied and begun anew, live events from before halt so many
// aggregates that nothing is taken any more. What status names leads back, literally.
func TestBegins_TheWayBackThatIsNamedWorks(t *testing.T) {
	r := newRebuilding(t, "begins-emptied")
	r.stop()
	r.cfg.HaltLimit = 2
	r.stop = keep(t, r.cfg, r.projections)
	all := []string{"a", "b", "c"}
	for _, aggregate := range all {
		send(t, r.topic, happens(aggregate, 1, 2)...)
		r.awaitSees(t, "orders", aggregate, "2 3 [1 2]")
	}
	if _, err := r.db.Collection("orders_v1").DeleteMany(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	for _, aggregate := range all {
		send(t, r.topic, happens(aggregate, 3)...)
		r.awaitSees(t, "orders", aggregate, "1 3 [3]")
		send(t, r.topic, happens(aggregate, 1, 2)...)
	}
	halted := func(n int64) func() bool {
		return func() bool {
			found, err := r.db.Collection("halted_aggregates").CountDocuments(t.Context(), bson.D{})
			return err == nil && found == n
		}
	}
	until(t, "nothing more is halted", halted(2))
	const section = `docs/operations.md, "Aggregates that began in the middle"`
	if lines, err := runCommand(t, "status", "--json"); err != nil || !strings.Contains(fmt.Sprint(lines[0]["warnings"]), "2 of the halted aggregates, such as") || !strings.Contains(fmt.Sprint(lines[0]["warnings"]), section) {
		t.Errorf("status: got %v and %v, want the way back named", lines, err)
	}
	if lines, err := runCommand(t, "doctor", "--json"); err == nil || !strings.Contains(fmt.Sprint(lines), "has 2 aggregates halted for events from before") {
		t.Errorf("doctor: got %v and %v, want it to find them", lines, err)
	}
	if lines, err := runCommand(t, "halts", "resume"); err != nil || len(lines) != 1 || lines[0]["accepted"] != 2.0 {
		t.Errorf("resume: got %v and %v, want two accepted", lines, err)
	}
	until(t, "the last one is halted", halted(3))
	for _, aggregate := range all {
		until(t, "both are parked", func() bool {
			lines, err := runCommand(t, "parked", "list", aggregate)
			return err == nil && len(lines) == 2
		})
		for _, args := range [][]string{{"parked", "discard", aggregate, "--all"}, {"parked", "redrive", aggregate}} {
			if lines, err := runCommand(t, args...); err != nil {
				t.Fatalf("%v: got %v and %v", args, lines, err)
			}
		}
	}
	done := r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	for _, aggregate := range all {
		send(t, r.topic, again(2, happens(aggregate, 1, 2, 3))...)
		r.awaitSees(t, "orders_v2", aggregate, "3 6 [1 2 3]")
	}
	r.says(t, 2, "done")
	if o := ends(t, done); o.err != nil {
		t.Errorf("rebuild: got %v after %v", o.err, o.lines)
	}
	for _, aggregate := range all {
		r.awaitSees(t, "orders", aggregate, "3 6 [1 2 3]")
	}
}

// A version that has come as far as the one that readers see, and began later, lacks
// what was before.
func TestSwitch_IsRefusedForAVersionThatBeganLater(t *testing.T) {
	v := newVersions(t)
	v.second(t, "versions", "projector", 4)
	for n := int64(3); n <= 4; n++ {
		applied(t, v.new, 2, "a", n, "Happened")
	}
	const reason = `version 2 begins 1 aggregates later than version 1, and lacks what was before: "a"; ` + delivery.Rebuild
	refusedFor(t, "orders", reason)
	refusedFor(t, "totals", reason)
	switchTo(t, "orders", "2", "--force")
}

// So does one to which it was resent too late, whatever readers see.
func TestSwitch_IsRefusedForAVersionThatLacksWhatWasResent(t *testing.T) {
	v := newVersions(t)
	v.second(t, "versions", "projector", 0)
	applied(t, v.new, 2, "b", 3, "Happened")
	event := readmodeltest.Event("b", 2)
	event.Resend = contract.Resend{ID: "x"}
	update := bson.D{{Key: "$inc", Value: bson.D{{Key: "events", Value: 1}}}}
	if _, err := v.new.Writes.Write(t.Context(), []projection.Write{{Projection: "orders_v2", Collection: "orders_v2", ID: "b", Event: event, Update: update}}); err != nil {
		t.Fatal(err)
	}
	refusedFor(t, "orders", `version 2 lacks what was resent of 1 aggregates, which had begun later: "b"`)
	switchTo(t, "totals", "2")
}

// Events that make no document do not make a version begin later.
func TestSwitch_AVersionThatDoesNotFollowTheFirstEventsIsNoLater(t *testing.T) {
	v := newVersions(t)
	v.second(t, "versions", "projector", 0)
	narrow := file(t, "narrow.yaml", strings.NewReplacer("version: 1", "version: 2", "Happened: {inc", "Closed: {inc", ", Closed: {set: {closed: true}}", "").Replace(versioned))
	for n := int64(1); n <= 3; n++ {
		kind := map[int64]string{1: "Happened", 2: "Happened", 3: "Closed"}[n]
		dealt(t, v.old, v.files[1], "a", n, kind)
		dealt(t, v.new, narrow, "a", n, kind)
	}
	v.as(2, narrow)
	switchTo(t, "orders", "2")
}
