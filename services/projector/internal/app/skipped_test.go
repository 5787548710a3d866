package app_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/sandboxtest"
)

// skippedTopics are those of the tests of policies.
var skippedTopics = []string{
	"skip-each", "skip-keyed", "skip-store", "skip-stop", "skip-brake", "skip-dead", "skip-accept", "skip-verify", "skip-default", "skip-again",
}

// policies are projections that each fail for an event whose n is a text, but for the
// first one.
const policies = `projections:
  - name: seen
    collection: seen
    on: {Happened: {push: {seen: event.version}}, Doubled: {push: {seen: event.version}}}
  - name: own
    collection: own
    onError: skip
    on: {Happened: {push: {seen: event.version}}, Doubled: {push: {seen: event.version}, inc: {sum: data.n * 2}}}
  - name: numbered
    version: 1
    collection: numbered
    onError: {evaluate: skip, store: stop}
    on: {Happened: {push: {seen: event.version}}, Doubled: {push: {seen: event.version}, inc: {sum: data.n * 2}}}
  - name: keyed
    collection: keyed
    key: '"all"'
    onError: skip
    on: {Happened: {push: {seen: event.version}}, Doubled: {push: {seen: event.version}, inc: {sum: data.n * 2}}}
  - name: before
    collection: before
    onError: skip
    on: {Happened: {push: {seen: event.version}}, Doubled: {push: {seen: event.version}, set: {sum: 'state.missing.deep * 2'}}}
`

// seenOf are the versions that a document has.
func seenOf(t *testing.T, db *mongo.Database, collection, id string) []int64 {
	t.Helper()
	return seen(sandboxtest.Documents(t, db, collection)[id])
}

// counted is how many documents a collection has.
func counted(t *testing.T, db *mongo.Database, collection string) int64 {
	t.Helper()
	n, err := db.Collection(collection).CountDocuments(t.Context(), bson.D{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// skippedOnes are the records as projector skipped list prints them, as projection and event.
func skippedOnes(t *testing.T, args ...string) (records []string, lines []map[string]any) {
	t.Helper()
	lines, err := runCommand(t, append([]string{"skipped", "list"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		records = append(records, fmt.Sprint(line["projection"], " ", line["event_id"], " ", line["class"], " ", line["action"]))
	}
	return records, lines
}

// An event that several projections cannot decide about is skipped for those alone, in
// each kind of documents: the others apply it, later events follow, also where missing
// versions are waited for, and a repeat is none.
func TestSkipped_ForTheProjectionThatFailsAloneAndRecordedOnce(t *testing.T) {
	const topic = "skip-each"
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	cfg := configured(t, topic, database)
	cfg.OnGap, cfg.GapWait = config.GapWait, 0
	onTopic(t, topic, database, policies)
	p := start(t, cfg, load(t, file(t, "projections.yaml", policies)))
	bad := event("a", 2, "Doubled", `{"n":"x"}`)
	send(t, topic, event("a", 1, "Happened", `{}`), bad, event("a", 3, "Happened", `{}`))
	lacking := []string{"own", "numbered_v1", "before"}
	arrived := func(last int64) func() bool {
		return func() bool {
			all := seenOf(t, db, "seen", "a")
			return len(all) > 0 && all[len(all)-1] == last && p.Status().Completed >= last
		}
	}
	until(t, "all have come", arrived(3))
	send(t, topic, bad, event("a", 4, "Happened", `{}`))
	until(t, "the repeat and the next have come", func() bool { return p.Status().Completed == 5 })
	if got := seenOf(t, db, "seen", "a"); !slices.Equal(got, []int64{1, 2, 3, 4}) {
		t.Errorf("the projection that applies it has %v, want all", got)
	}
	for _, collection := range lacking {
		if got := seenOf(t, db, collection, "a"); !slices.Equal(got, []int64{1, 3, 4}) {
			t.Errorf("%s has %v, want all but the one that is skipped", collection, got)
		}
	}
	if got := seenOf(t, db, "keyed", "all"); !slices.Equal(got, []int64{1, 3, 4}) {
		t.Errorf("the document of another key has %v, want all but the one that is skipped", got)
	}
	want := []string{"before a-2 evaluate skip", "keyed a-2 evaluate skip", "numbered_v1 a-2 evaluate skip", "own a-2 evaluate skip"}
	records, lines := skippedOnes(t)
	if !slices.Equal(records, want) {
		t.Errorf("records:\n got %q\nwant %q", records, want)
	}
	for _, line := range lines {
		keyed, mend := line["projection"] == "keyed", fmt.Sprint(line["repair"])
		if strings.Contains(mend, " --aggregate a ") == keyed || !strings.HasPrefix(mend, "projector rebuild --projection ") || line["message"] != nil {
			t.Errorf("%v: mend is %q, want the rebuild that there is for it", line["projection"], mend)
		}
	}
	s := p.Status()
	if s.Skipped != 4 || *s.HaltedAggregates != 0 || s.DeadLettered != 0 || s.VersionGaps != 0 || s.PassedBy != 0 {
		t.Errorf("status: %+v, want four skipped, and nothing halted, missing or dead-lettered", s)
	}
	until(t, "the records are counted", func() bool { return p.Status().SkippedEvents != nil })
	if metrics := scraped(t, p); !strings.Contains(metrics, "projector_skipped_total 4\n") || !strings.Contains(metrics, "projector_skipped_events ") {
		t.Errorf("the metrics do not tell of four:\n%s", metrics)
	}
	shown, err := runCommand(t, "skipped", "show", "a")
	if err != nil || len(shown) != 4 || !strings.Contains(fmt.Sprint(shown[0]["message"]), `n:x`) {
		t.Errorf("show: got %v and %v, want the whole messages", shown, err)
	}
	if !strings.Contains(p.logs.String(), "see projector skipped list") {
		t.Error("the log says nothing")
	}
}

// What the read database refuses is skipped as well, with one collection and with
// several, which are one transaction: the right projection is blamed, and others have it.
func TestSkipped_WhatTheReadDatabaseRefuses(t *testing.T) {
	const topic = "skip-store"
	const refusing = `projections:
  - name: first
    collection: first
    on: {Happened: {push: {seen: event.version}}, Doubled: {push: {seen: event.version}}}
  - name: refused
    collection: refused
    onError: {store: skip}
    on: {Happened: {push: {seen: event.version}, set: {sum: '"text"'}}, Doubled: {push: {seen: event.version}, inc: {sum: 1}}, Alone: {push: {seen: event.version}, inc: {sum: 1}}}
  - name: last
    collection: last
    key: '"all"'
    on: {Happened: {push: {seen: event.version}}, Doubled: {push: {seen: event.version}}}
`
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	cfg := configured(t, topic, database)
	onTopic(t, topic, database, refusing)
	p := start(t, cfg, load(t, file(t, "projections.yaml", refusing)))
	send(t, topic, event("a", 1, "Happened", `{}`), event("a", 2, "Doubled", `{}`), event("a", 3, "Alone", `{}`), event("a", 4, "Happened", `{}`))
	until(t, "all have come", func() bool { return p.Status().Completed == 4 })
	for collection, want := range map[string][]int64{"first": {1, 2, 4}, "refused": {1, 4}} {
		if got := seenOf(t, db, collection, "a"); !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", collection, got, want)
		}
	}
	if got := seenOf(t, db, "last", "all"); !slices.Equal(got, []int64{1, 2, 4}) {
		t.Errorf("last has %v, want what is not refused", got)
	}
	if records, _ := skippedOnes(t); !slices.Equal(records, []string{"refused a-2 store skip", "refused a-3 store skip"}) {
		t.Errorf("records: got %q, want the two", records)
	}
	if halted := sandboxtest.Documents(t, db, "halted_aggregates"); len(halted) != 0 {
		t.Errorf("%d aggregates are halted, want none", len(halted))
	}
}

// Where a projection with a key is alone, the entry of the ledger is all that moves.
func TestSkipped_OfAnotherKeyIsRecordedAlso(t *testing.T) {
	const topic = "skip-keyed"
	const keyed = `projections: [{name: keyed, collection: keyed, key: data.k, onError: skip, on: {Doubled: {inc: {sum: data.n * 2}}}}]`
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	cfg := configured(t, topic, database)
	onTopic(t, topic, database, keyed)
	p := start(t, cfg, load(t, file(t, "projections.yaml", keyed)))
	send(t, topic, event("a", 1, "Doubled", `{"n":1,"k":"k"}`), event("a", 2, "Doubled", `{"n":"x","k":"k"}`), event("a", 3, "Doubled", `{"n":2,"k":"k"}`))
	until(t, "all have come", func() bool { return p.Status().Completed == 3 })
	if got := sandboxtest.Documents(t, db, "keyed")["k"].Lookup("sum").AsInt64(); got != 6 {
		t.Errorf("the document has %d, want what is not skipped", got)
	}
	if records, _ := skippedOnes(t); !slices.Equal(records, []string{"keyed a-2 evaluate skip"}) {
		t.Errorf("records: got %q, want the one", records)
	}
}

// Where no policy says so nothing is skipped; where the deployment's does, a projection
// that says halt is still halted, and so is whatever puts the order in doubt.
func TestSkipped_ByTheDeploymentUnlessTheProjectionSaysOtherwise(t *testing.T) {
	const topic = "skip-default"
	const two = `projections:
  - name: free
    collection: free
    on: {Doubled: {inc: {sum: data.n * 2}}}
  - name: strict
    collection: strict
    onError: halt
    on: {Tripled: {inc: {sum: data.n * 3}}}
`
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	cfg := configured(t, topic, database)
	cfg.OnError = "skip"
	onTopic(t, topic, database, two)
	p := start(t, cfg, load(t, file(t, "projections.yaml", two)))
	twin := event("c", 1, "Doubled", `{"n":1}`)
	twin.ID = "twin"
	send(t, topic, event("a", 1, "Doubled", `{"n":"x"}`), event("b", 1, "Tripled", `{"n":"x"}`), event("c", 1, "Doubled", `{"n":1}`), twin)
	until(t, "all have come", func() bool { return p.Status().Completed == 4 })
	if records, _ := skippedOnes(t); !slices.Equal(records, []string{"free a-1 evaluate skip"}) {
		t.Errorf("records: got %q, want one", records)
	}
	if halted := sandboxtest.Documents(t, db, "halted_aggregates"); len(halted) != 2 || halted["b"] == nil || halted["c"] == nil {
		t.Errorf("halted: got %v, want the one that says so, and the one with two events of one version", halted)
	}
}

// A dead letter by a policy is one with the reason, later events flow, and it is put back
// once the projection is mended: at once where nothing later is applied, and otherwise the
// record says what is left to do.
func TestSkipped_ADeadLetterIsPutBackWhileNothingLaterIsApplied(t *testing.T) {
	const topic = "skip-dead"
	const letters = `projections:
  - name: seen
    collection: seen
    on: {Happened: {push: {seen: event.version}}, Doubled: {push: {seen: event.version}}}
  - name: dead
    collection: dead
    onError: deadletter
    on: {Happened: {push: {seen: event.version}}, Doubled: {push: {seen: event.version}, inc: {sum: data.n * 2}}}
  - name: left
    collection: left
    onError: skip
    on: {Doubled: {inc: {sum: data.n * 2}}}
`
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	cfg := configured(t, topic, database)
	onTopic(t, topic, database, letters)
	p := start(t, cfg, load(t, file(t, "projections.yaml", letters)))
	send(t, topic, event("a", 1, "Happened", `{}`), event("a", 2, "Doubled", `{"n":"x"}`))
	send(t, topic, event("b", 1, "Happened", `{}`), event("b", 2, "Doubled", `{"n":"x"}`), event("b", 3, "Happened", `{}`))
	until(t, "all have come", func() bool { s := p.Status(); return s.Completed == 3 && s.DeadLettered == 2 })
	for aggregate, want := range map[string][]int64{"a": {1}, "b": {1, 3}} {
		if got := seenOf(t, db, "dead", aggregate); !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", aggregate, got, want)
		}
	}
	lines, err := runCommand(t, "dlq", "list")
	if err != nil || len(lines) != 2 || lines[0]["reason"] != "NotApplied" || !strings.Contains(fmt.Sprint(lines[0]["description"]), `evaluate: projection "dead"`) {
		t.Errorf("dlq list: got %v and %v, want both with their reason", lines, err)
	}
	if by := fmt.Sprint(lines[0]["lacked_by"], lines[1]["lacked_by"]); by != "[dead left] [dead left]" {
		t.Errorf("dlq list: %s lack the events, want those that have not applied them", by)
	}
	if _, listed := skippedOnes(t, "b"); len(listed) != 2 || listed[0]["action"] != "deadletter" || !strings.HasPrefix(fmt.Sprint(listed[0]["repair"]), "projector dlq redrive --all; where something later is applied projector rebuild") {
		t.Errorf("the record: got %v, want it with both ways back", listed)
	}
	// Before the projection is mended it stays where it is.
	lines, err = runWhole(t, "dlq", "redrive", "--all")
	if err == nil || lines[len(lines)-1]["step"] != "done" || fmt.Sprint(lines[len(lines)-1]["fates"]) != "map[refused:2]" {
		t.Errorf("not mended: got %v and %v, want both refused", lines, err)
	}
	reasons, _ := lines[len(lines)-1]["reasons"].([]any)
	if len(reasons) != 1 || !strings.HasPrefix(fmt.Sprint(reasons[0]), `map[count:2 example:projection "dead", event type "Doubled"`) {
		t.Errorf("reasons: got %v, want one kind, twice", reasons)
	}
	mended := strings.ReplaceAll(letters, "data.n * 2", "100")
	t.Setenv("PROJECTIONS", file(t, "mended.yaml", mended))
	lines, err = runWhole(t, "dlq", "redrive", "--all", "--other-projections")
	summary := lines[len(lines)-1]
	if err == nil || fmt.Sprint(summary["fates"]) != "map[put back:1 refused:1]" || summary["applied"] != 1.0 || summary["lifted"] == 0.0 {
		t.Errorf("mended: got %v and %v, want one put back and one refused", lines, err)
	}
	if got := seenOf(t, db, "dead", "a"); !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("a has %v, want what was put back", got)
	}
	if got := seenOf(t, db, "seen", "a"); !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("the projection that had it has %v, want it once", got)
	}
	// The document of the projection that skips is begun with it: there was none.
	if got := sandboxtest.Documents(t, db, "left")["a"].Lookup("sum").AsInt64(); got != 100 {
		t.Errorf("left has %d, want what was put back", got)
	}
	if records, _ := skippedOnes(t); !slices.Equal(records, []string{"dead b-2 evaluate deadletter", "left b-2 evaluate skip"}) {
		t.Errorf("records: got %q, want none of what was put back", records)
	}
	// Once no projection lacks the event, by whatever way, the letter and the redrive say so.
	if lines, err := runCommand(t, "skipped", "accept", "b", "--all", "--other-projections"); err != nil || len(lines) != 2 {
		t.Fatalf("accept: got %v and %v, want both", lines, err)
	}
	if lines, err := runCommand(t, "dlq", "list"); err != nil || len(lines) != 1 || fmt.Sprint(lines[0]["lacked_by"]) != "[]" {
		t.Errorf("dlq list: got %v and %v, want one that nobody lacks", lines, err)
	}
	lines, err = runWhole(t, "dlq", "redrive", "--all", "--other-projections")
	if err == nil || lines[0]["fate"] != "settled" || !strings.Contains(fmt.Sprint(lines[0]["reason"]), "projector dlq discard") {
		t.Errorf("settled: got %v and %v, want it to say so, and what removes the letter", lines, err)
	}
	// Without the read database the letters are listed all the same.
	t.Setenv("READMODEL_MONGODB_URI", "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=50")
	if lines, err := runCommand(t, "dlq", "list"); err != nil || len(lines) != 1 || lines[0]["lacked_by"] != nil {
		t.Errorf("dlq list: got %v and %v, want the letter without what the read database says", lines, err)
	}
}

// skipping runs a projector on a topic of its own, which skips what it cannot apply, with
// what changes make of its settings.
func skipping(t *testing.T, topic string, changes ...func(*config.Config)) (db *mongo.Database, cfg config.Config, p *projector) {
	t.Helper()
	const declared = counting + "  onError: skip\n"
	client, database := servers.Mongo(t, nil)
	cfg = configured(t, topic, database)
	for _, change := range changes {
		change(&cfg)
	}
	onTopic(t, topic, database, declared)
	return client.Database(database), cfg, start(t, cfg, load(t, file(t, "skipping.yaml", declared)))
}

// A first event that was skipped has left no document and no position. It comes again after
// the projection was mended, even under another policy: it is applied, and no record says
// that the document lacks it.
func TestSkipped_AFirstEventThatComesAgainIsApplied(t *testing.T) {
	const topic = "skip-again"
	db, cfg, p := skipping(t, topic)
	bad := []contract.Event{event("a", 1, "Doubled", `{"n":"x"}`), event("a", 2, "Doubled", `{"n":"x"}`)}
	send(t, topic, bad...)
	until(t, "both are skipped", func() bool { return p.Status().Skipped == 2 })
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	mended := strings.ReplaceAll(counting, "data.n * 2", "100")
	onTopic(t, topic, cfg.Database, mended)
	p = start(t, cfg, load(t, file(t, "mended.yaml", mended)))
	until(t, "it knows that there are records", func() bool { n := p.Status().SkippedEvents; return n != nil && *n == 2 })
	send(t, topic, bad...)
	until(t, "both are applied", func() bool { return p.Status().Applied == 2 })
	if got := sandboxtest.Documents(t, db, "orders")["a"].Lookup("events").AsInt64(); got != 200 {
		t.Errorf("the document has %d, want both", got)
	}
	if records, _ := skippedOnes(t); len(records) != 0 {
		t.Errorf("records: got %q, want none", records)
	}
}

// Stop stops all replicas and loses nothing: a restart changes nothing, and once the
// projection is mended and an operator has resumed, the event is applied.
func TestSkipped_StopTakesNoMoreSessionsUntilAnOperatorResumes(t *testing.T) {
	const topic = "skip-stop"
	const stopping = counting + "  onError: stop\n"
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	cfg := configured(t, topic, database)
	cfg.HaltLimit = 0
	onTopic(t, topic, database, stopping)
	p := start(t, cfg, load(t, file(t, "stopping.yaml", stopping)))
	send(t, topic, event("a", 1, "Happened", `{}`), event("a", 2, "Doubled", `{"n":"x"}`))
	stopped := func() bool {
		s := p.Status()
		return s.State == "stopped by an event" && s.Sessions == 0 && s.Accepting == 0
	}
	until(t, "it stands still", stopped)
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	p = start(t, cfg, load(t, file(t, "stopping.yaml", stopping)))
	send(t, topic, event("b", 1, "Happened", `{}`))
	until(t, "the restarted one stands still", stopped)
	if s := p.Status(); s.Received != 0 || !strings.Contains(s.HaltBrake, `event "a-2" of aggregate "a"`) || !strings.Contains(s.HaltBrake, `cannot be applied, and onError says stop: projection "orders"`) || !strings.Contains(s.HaltBrake, "projector halts resume") {
		t.Errorf("status: %d received, %q, want nothing, with event and command", s.Received, s.HaltBrake)
	}
	if code, _ := answer(t, p, "/ready"); code != http.StatusServiceUnavailable {
		t.Errorf("/ready: got %d, want 503", code)
	}
	if !strings.Contains(scraped(t, p), "projector_halt_brake 1\n") {
		t.Error("no projector_halt_brake 1 in the metrics")
	}
	for _, collection := range []string{"halted_aggregates", "skipped_events", "parked_messages"} {
		if n := counted(t, db, collection); n != 0 {
			t.Errorf("%s has %d documents, want none", collection, n)
		}
	}
	if lines, err := runCommand(t, "halts", "resume", "--dry-run"); err != nil || lines[0]["stopped_by_event"] != "a-2" {
		t.Errorf("dry run: got %v and %v, want the event", lines, err)
	}
	until(t, "it still stands still", stopped)
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	mended := strings.ReplaceAll(stopping, "data.n * 2", "100")
	t.Setenv("PROJECTIONS", file(t, "mended.yaml", mended))
	p = start(t, cfg, load(t, file(t, "mended.yaml", mended)))
	until(t, "the mended one stands still", stopped)
	if lines, err := runCommand(t, "halts", "resume"); err != nil || lines[0]["stopped_by_event"] != "a-2" {
		t.Fatalf("resume: got %v and %v, want the event", lines, err)
	}
	until(t, "all is applied", func() bool { return p.Status().Applied == 2 })
	if got := sandboxtest.Documents(t, db, "orders")["a"].Lookup("events").AsInt64(); got != 101 {
		t.Errorf("a has %d, want both events once", got)
	}
	decided(t, 1, "halts resume", "a-2", "inc")
}

// What is skipped counts for HALT_LIMIT, together with what is halted: a projection that
// is wrong skips some and no more.
func TestSkipped_CountsForTheLimit(t *testing.T) {
	const topic = "skip-brake"
	db, _, p := skipping(t, topic, func(cfg *config.Config) { cfg.HaltLimit = 3 })
	for i := range 8 {
		send(t, topic, event(fmt.Sprint("a", i), 1, "Doubled", `{"n":"x"}`), event(fmt.Sprint("a", i), 2, "Doubled", `{"n":"x"}`))
	}
	records := func(want int64) {
		t.Helper()
		until(t, "the projector stands still", func() bool { s := p.Status(); return s.State == "stopped by HALT_LIMIT" && s.Sessions == 0 })
		if n := counted(t, db, "skipped_events"); n != want {
			t.Errorf("%d events are skipped, want %d", n, want)
		}
	}
	records(3)
	if why := p.Status().HaltBrake; !strings.Contains(why, "projector skipped list") {
		t.Errorf("status says %q, want the command", why)
	}
	if lines, err := runCommand(t, "halts", "resume"); err != nil || lines[0]["skipped_accepted"] != 3.0 {
		t.Errorf("resume: got %v and %v, want three accepted", lines, err)
	}
	until(t, "it goes on", func() bool { return counted(t, db, "skipped_events") > 3 })
	records(6)
	decided(t, 1, "halts resume", "a", "skipped for projection")
}

// Accepted records are printed whole before they are removed, and the ledger names them.
func TestSkipped_AcceptRemovesRecordsWithALineInTheLedger(t *testing.T) {
	const topic = "skip-accept"
	db, _, p := skipping(t, topic)
	send(t, topic, event("a", 1, "Doubled", `{"n":"x"}`), event("a", 2, "Doubled", `{"n":"y"}`), event("a", 3, "Doubled", `{"n":"z"}`))
	until(t, "all are skipped", func() bool { return p.Status().Skipped == 3 })
	if lines, err := runCommand(t, "skipped", "accept", "a", "a-2", "--dry-run"); err != nil || len(lines) != 1 || lines[0]["dry_run"] != true {
		t.Errorf("dry run: got %v and %v, want the one", lines, err)
	}
	lines, err := runCommand(t, "skipped", "accept", "a", "a-2")
	if err != nil || len(lines) != 1 || !strings.Contains(fmt.Sprint(lines[0]["message"]), "n:y") {
		t.Errorf("accept: got %v and %v, want the one, whole", lines, err)
	}
	decided(t, 1, "skipped accept", "a-2", "skipped for projection")
	if records, _ := skippedOnes(t); len(records) != 2 {
		t.Errorf("records: got %q, want the other two", records)
	}
	if lines, err := runCommand(t, "skipped", "accept", "a", "--all"); err != nil || len(lines) != 2 {
		t.Errorf("accept all: got %v and %v, want two", lines, err)
	}
	if _, err := runCommand(t, "skipped", "accept", "a", "--all"); err == nil {
		t.Error("accept of nothing succeeds")
	}
	if n := counted(t, db, "skipped_events"); n != 0 {
		t.Errorf("%d records are left", n)
	}
}
