package app_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/app"
	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// state is a collection of the state database.
func state(t *testing.T, servers testserver.Servers, name string) *mongo.Collection {
	t.Helper()
	return testserver.Connect(t, servers.MongoURI).Database("change_relay",
		options.Database().SetWriteConcern(writeconcern.Majority())).Collection(name)
}

// only is the one document of a collection.
func only(t *testing.T, from *mongo.Collection) bson.Raw {
	t.Helper()
	found, err := from.FindOne(t.Context(), bson.D{}).Raw()
	if err != nil {
		t.Fatalf("read %s: %v", from.Name(), err)
	}
	return found
}

// put makes a document that of a collection, as a restore from a backup does.
func put(t *testing.T, into *mongo.Collection, document bson.Raw) {
	t.Helper()
	_, err := into.ReplaceOne(t.Context(), bson.D{{Key: "_id", Value: document.Lookup("_id")}}, document, options.Replace().SetUpsert(true))
	if err != nil {
		t.Fatal(err)
	}
}

func wipe(t *testing.T, collection *mongo.Collection) {
	t.Helper()
	if _, err := collection.DeleteMany(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
}

// published runs a publisher that sends count events, and returns the checkpoint
// and the record that it leaves.
func published(t *testing.T, servers testserver.Servers, source *source, count int) (checkpoint, record bson.Raw) {
	t.Helper()
	p := run(t, configured(servers))
	p.await(t, "the publisher to lead", leading)
	source.write(t, count, 5)
	p.await(t, "the events to be sent", sent(int64(count)))
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	return only(t, state(t, servers, "resume_tokens")), only(t, state(t, servers, "streams"))
}

// awaitHalt waits until a publisher is halted, and wants it said everywhere.
func (p *process) awaitHalt(t *testing.T, reason string, names ...string) status.Status {
	t.Helper()
	shown := p.await(t, "the publisher to halt", func(s status.Status) bool { return s.State == "halted" && s.GapCounts["stop"] > 0 })
	for _, want := range append(names, reason) {
		if !strings.Contains(shown.LastError, want) {
			t.Errorf("last error is %q, without %q", shown.LastError, want)
		}
	}
	if code, _ := p.get(t, "/ready"); code != http.StatusServiceUnavailable {
		t.Errorf("/ready answers %d, want 503", code)
	}
	if _, metrics := p.get(t, "/metrics"); !strings.Contains(metrics, `publisher_halted{reason="`+reason+`"} 1`) || !strings.Contains(metrics, `publisher_gaps{decision="stop"} 1`) {
		t.Errorf("/metrics does not say that it is halted for %q", reason)
	}
	if last := shown.Gaps[len(shown.Gaps)-1]; last.Cause != reason || last.Decision != "stop" {
		t.Errorf("the ledger says %+v, want the cause %q", last, reason)
	}
	return shown
}

func TestStream_AMissingCheckpointHaltsAndACommandDecides(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	checkpoint, _ := published(t, servers, source, 100)
	wipe(t, state(t, servers, "resume_tokens"))
	source.write(t, 50, 5)
	p := run(t, configured(servers))
	shown := p.awaitHalt(t, "checkpoint missing", "publisher checkpoint set PLACE", "publisher checkpoint reset")
	if shown.Sent != 0 {
		t.Errorf("%d events were sent, want none", shown.Sent)
	}
	view, err := say[command.StreamView](t, configured(servers), "status")
	if err != nil || view.Checkpoint.Exists || view.Halted == "" || len(view.Warnings) == 0 {
		t.Errorf("status = %+v, %v, want it halted without a checkpoint, and a warning", view, err)
	}
	if _, err := say[command.MoveView](t, configured(servers), "checkpoint", "accept", "--why", "x"); err == nil || !strings.Contains(err.Error(), "no place") {
		t.Errorf("accept = %v, want it refused: there is nothing to accept", err)
	}
	position := checkpoint.Lookup("position").StringValue()
	moved, err := say[command.MoveView](t, configured(servers), "checkpoint", "set", "--why", "from the backup", position)
	if err != nil || moved.After.Position != position || moved.After.Term <= checkpoint.Lookup("term").AsInt64() {
		t.Errorf("set = %+v, %v, want it beside the halted leader, in a higher term", moved, err)
	}
	p.await(t, "the leader to go on at once", func(s status.Status) bool { return leading(s) && s.Sent >= 50 })
	source.wantAll(t, source.drain(t, servers))
}

func TestStream_ALeaderWhoseStateVanishesStopsAndWritesItDown(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lost   []string
		reason string
		decide []string
	}{
		"its checkpoint":   {[]string{"resume_tokens"}, "checkpoint missing", []string{"checkpoint", "set"}},
		"its record":       {[]string{"streams"}, "stream record lost", []string{"checkpoint", "set"}},
		"both":             {[]string{"resume_tokens", "streams"}, "stream record lost", []string{"checkpoint", "set", "--new"}},
		"all that is kept": {[]string{"resume_tokens", "streams", "stream_gaps"}, "stream record lost", []string{"checkpoint", "set", "--new"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			source := events(t, servers)
			p := run(t, configured(servers))
			p.await(t, "the publisher to lead", leading)
			source.write(t, 50, 5)
			p.await(t, "the events to be sent", sent(50))
			place := time.Now().Add(-time.Minute).Format(time.RFC3339)
			for _, collection := range tt.lost {
				wipe(t, state(t, servers, collection))
			}
			source.write(t, 50, 5) // the leader saves, and finds out
			p.awaitHalt(t, tt.reason)
			source.write(t, 50, 5)
			args := slices.Concat(tt.decide, []string{"--force", "--why", "test", place})
			if _, err := say[command.MoveView](t, configured(servers), args...); err != nil {
				t.Fatal(err)
			}
			shown := p.await(t, "the leader to go on", func(s status.Status) bool { return leading(s) && s.Sent >= 200 })
			if shown.Term < 2 {
				t.Errorf("it goes on in term %d, want one above all that it had", shown.Term)
			}
			source.wantAll(t, source.drain(t, servers))
		})
	}
}

func TestStream_ARestoredStateIsCaughtByTheProcessThatKnewIt(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	checkpoint, record := published(t, servers, source, 50)
	for range 3 { // terms that neither the record nor a command knows of
		p := run(t, configured(servers))
		p.await(t, "the publisher to lead", leading)
		if err := p.quit(); err != nil {
			t.Fatal(err)
		}
	}
	p := run(t, configured(servers))
	p.await(t, "the publisher to lead", leading)
	source.write(t, 50, 5)
	term := p.await(t, "the events to be sent", sent(50)).Term
	put(t, state(t, servers, "streams"), record)
	put(t, state(t, servers, "resume_tokens"), checkpoint)
	source.write(t, 50, 5)
	p.awaitHalt(t, "stream record lost", "publisher checkpoint accept")
	if _, err := say[command.MoveView](t, configured(servers), "checkpoint", "accept", "--why", "restored on purpose"); err != nil {
		t.Fatal(err)
	}
	p.await(t, "the leader to go on in a term above all it had", func(s status.Status) bool { return leading(s) && s.Term > term && s.Sent >= 150 })
	source.wantAll(t, source.drain(t, servers))
}

func TestStream_ACheckpointThatWentBackHaltsUntilItIsAccepted(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	checkpoint, _ := published(t, servers, source, 50)
	published(t, servers, source, 50)
	put(t, state(t, servers, "resume_tokens"), checkpoint)
	p := run(t, configured(servers))
	p.awaitHalt(t, "checkpoint went back", "publisher checkpoint accept")
	moved, err := say[command.MoveView](t, configured(servers), "checkpoint", "accept", "--why", "restored")
	if err != nil || len(moved.Accepts) == 0 {
		t.Errorf("accept = %+v, %v, want it to say what it accepts", moved, err)
	}
	p.await(t, "what came after it to be sent again", func(s status.Status) bool { return leading(s) && s.Sent >= 50 })
}

func TestStream_AStateDatabaseOfWhichPartIsLeftIsNoFirstStart(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	published(t, servers, events(t, servers), 20)
	wipe(t, state(t, servers, "resume_tokens"))
	wipe(t, state(t, servers, "streams"))
	run(t, configured(servers)).awaitHalt(t, "stream record lost", "--new")
}

func TestStream_ACheckpointWithoutARecordIsAdopted(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	checkpoint, _ := published(t, servers, source, 20)
	for _, collection := range []string{"resume_tokens", "streams", "stream_gaps"} {
		wipe(t, state(t, servers, collection))
	}
	legacy, err := bson.Marshal(bson.D{{Key: "_id", Value: "shop.events"}, {Key: "token", Value: checkpoint.Lookup("token")}})
	if err != nil {
		t.Fatal(err)
	}
	put(t, state(t, servers, "resume_tokens"), legacy)
	source.write(t, 30, 5)
	view, err := say[command.StreamView](t, configured(servers), "status")
	if err != nil || !view.Checkpoint.Exists || !view.Checkpoint.Token || view.Checkpoint.At == nil || view.LagSeconds == nil {
		t.Errorf("status = %+v, %v, want it to show the token", view, err)
	}
	if !strings.Contains(strings.Join(view.Warnings, " "), "the next leader makes it") {
		t.Errorf("status warns of %q, want that there is no record yet", view.Warnings)
	}
	p := run(t, configured(servers))
	shown := p.await(t, "the stream to go on after the token", func(s status.Status) bool { return leading(s) && s.Sent >= 30 })
	if shown.Term != 1 || shown.Began == nil || shown.Began.How != "adopted" || shown.Sent != 30 {
		t.Errorf("status is %+v, want it adopted", shown)
	}
	if record := only(t, state(t, servers, "streams")); record.Lookup("confirmed").AsInt64() != 1 {
		t.Errorf("the record is %s", record)
	}
	source.wantAll(t, source.drain(t, servers))
}

// TestStream_ALostRecordIsNotMadeAnewFromOtherSettings loses the record alone, and
// starts with another topic: nothing but the record says that it is another one.
func TestStream_ALostRecordIsNotMadeAnewFromOtherSettings(t *testing.T) {
	t.Parallel()
	for known, unknown := range map[string]func(t *testing.T, servers testserver.Servers){
		"by the claim of its checkpoint": func(t *testing.T, servers testserver.Servers) {
			t.Helper()
			wipe(t, state(t, servers, "stream_gaps"))
		},
		"by its beginning in the ledger": func(t *testing.T, servers testserver.Servers) {
			t.Helper()
			edit(t, state(t, servers, "resume_tokens"), "$unset", "claim", "")
		},
	} {
		t.Run(known, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			source := events(t, servers)
			published(t, servers, source, 20)
			wipe(t, state(t, servers, "streams"))
			unknown(t, servers)
			view, err := say[command.StreamView](t, configured(servers), "status")
			if said := strings.Join(view.Warnings, " "); err != nil || !strings.Contains(said, "no leader goes on") || strings.Contains(said, "no record yet") {
				t.Errorf("status warns of %q, %v, want that the next leader halts", view.Warnings, err)
			}
			other := run(t, configured(servers, named("b"), func(c *config.Config) { c.ServiceBusTopic = "elsewhere" }))
			shown := other.awaitHalt(t, "stream record lost", "publisher checkpoint accept")
			if shown.Sent != 0 {
				t.Errorf("%d events were sent, want none", shown.Sent)
			}
			if err := other.quit(); err != nil {
				t.Fatal(err)
			}
			if _, err := say[command.MoveView](t, configured(servers), "checkpoint", "accept", "--why", "the record was lost"); err != nil {
				t.Fatal(err)
			}
			source.write(t, 20, 5)
			run(t, configured(servers)).await(t, "the stream to go on", func(s status.Status) bool { return leading(s) && s.Sent >= 20 })
			source.wantAll(t, source.drain(t, servers))
		})
	}
}

// TestStream_ALostRecordOfARepartitionIsNotMadeAnew loses the records of partitions that
// nobody has led yet.
func TestStream_ALostRecordOfARepartitionIsNotMadeAnew(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	published(t, servers, events(t, servers), 20)
	c := configured(servers, split(2), patient)
	if err := runCommand(t, c, &syncBuffer{}, "repartition"); err != nil {
		t.Fatal(err)
	}
	wipe(t, state(t, servers, "streams"))
	wipe(t, state(t, servers, "stream_gaps"))
	c.ServiceBusTopic = "elsewhere"
	run(t, c).awaitOverview(t, "both to halt", func(o app.Overview) bool {
		return !slices.ContainsFunc(o.Streams, func(s status.Status) bool { return !strings.Contains(s.LastError, "stream record lost") })
	})
}

func TestStream_ACheckpointWithoutAPlaceHalts(t *testing.T) {
	t.Parallel()
	for name, recorded := range map[string]bool{"with a record": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			checkpoint, _ := published(t, servers, events(t, servers), 20)
			if !recorded {
				wipe(t, state(t, servers, "streams"))
			}
			empty, err := bson.Marshal(bson.D{{Key: "_id", Value: "shop.events"}, {Key: "term", Value: checkpoint.Lookup("term")}})
			if err != nil {
				t.Fatal(err)
			}
			put(t, state(t, servers, "resume_tokens"), empty)
			run(t, configured(servers)).awaitHalt(t, "checkpoint without a place", "publisher checkpoint reset")
		})
	}
}

func TestStream_AnotherSourceHalts(t *testing.T) {
	t.Parallel()
	for field, known := range map[string]string{"source.set": `"elsewhere"`, "source.cluster": ""} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			published(t, servers, events(t, servers), 20)
			edit := bson.D{{Key: "$set", Value: bson.D{{Key: field, Value: "elsewhere"}}}}
			if _, err := state(t, servers, "streams").UpdateOne(t.Context(), bson.D{}, edit); err != nil {
				t.Fatal(err)
			}
			if known == "" { // a cluster whose id may not be read is not told apart by it
				run(t, configured(servers)).await(t, "the publisher to lead", leading)
				return
			}
			run(t, configured(servers)).awaitHalt(t, "another source", known, "MONGODB_URI")
			if _, err := say[command.MoveView](t, configured(servers), "checkpoint", "set", "--why", "x", "2026-01-01T00:00:00Z"); err == nil || !strings.Contains(err.Error(), known) {
				t.Errorf("checkpoint set = %v, want it refused: places there are others", err)
			}
		})
	}
}

func TestStream_AFirstStartSaysWhereItBeganAndWhatItLeftOut(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	source.write(t, 70, 5)
	p := run(t, configured(servers))
	status := p.await(t, "the publisher to lead", leading)
	if status.Began == nil || status.Began.How != "now" || status.Began.At == nil || !strings.Contains(status.Began.Skipped, "70 documents") || len(status.Gaps) != 0 {
		t.Errorf("status is %+v, want what was there and is not sent, which is no gap", status)
	}
	if !strings.Contains(p.log.String(), `"documents":70`) {
		t.Error("the log does not warn")
	}
	entry := only(t, state(t, servers, "stream_gaps"))
	if entry.Lookup("decision").StringValue() != "begin" || entry.Lookup("cause").StringValue() != "first start" || entry.Lookup("toTime").Time().IsZero() {
		t.Errorf("the ledger says %s", entry)
	}
	view, err := say[command.StreamView](t, configured(servers), "status")
	if err != nil || len(view.Warnings) != 1 || !strings.Contains(view.Warnings[0], "70 documents") {
		t.Errorf("status = %+v, %v, want a warning", view, err)
	}
}

func TestStream_TwoLeasesOfOneStreamAreToldApart(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	first := run(t, configured(servers, named("first")))
	first.await(t, "the first to lead", leading)
	second := run(t, configured(servers, named("second"), func(c *config.Config) { c.LeaseName = "another" }))
	second.awaitHalt(t, "stream led under another lease", `"first"`, "LEASE_NAME=publisher")
	if got := first.status(t); !leading(got) || got.Term != 1 {
		t.Errorf("the first is at %+v, want it to lead undisturbed", got)
	}
}

func TestStream_ARetiredCheckpointIsAMissingOne(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	published(t, servers, events(t, servers), 20)
	edit(t, state(t, servers, "resume_tokens"), "$set", "retired", true)
	run(t, configured(servers)).awaitHalt(t, "checkpoint missing", "publisher checkpoint set PLACE")
}

func TestStream_ARetiredStreamIsNotLed(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	p := run(t, configured(servers, patient))
	p.await(t, "the publisher to lead", leading)
	source.write(t, 20, 5)
	p.await(t, "the events to be sent", sent(20))
	wipe(t, state(t, servers, "leader_leases")) // as if it was frozen until its lease was over
	if _, err := say[any](t, configured(servers, split(2)), "repartition"); err != nil {
		t.Fatal(err)
	}
	source.write(t, 20, 5)
	p.await(t, "it to stop", func(s status.Status) bool {
		return s.State == "standing by" || s.State == "halted" && strings.Contains(s.LastError, "stream retired")
	})
	run(t, configured(servers, split(2))).awaitOverview(t, "both partitions to be led", leads(2))
	source.wantAll(t, source.drain(t, servers))
}

func TestStream_WhatAMoveLeavesOutIsInTheLedger(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lost     bool
		moves    [][]string // PLACE stands for a place after the one that is kept
		decision string
	}{
		"set":                     {moves: [][]string{{"set", "PLACE"}}, decision: "set"},
		"set, of one lost":        {lost: true, moves: [][]string{{"set", "PLACE"}}, decision: "set"},
		"reset":                   {moves: [][]string{{"reset"}}, decision: "reset"},
		"reset, of one lost":      {lost: true, moves: [][]string{{"reset"}}, decision: "reset"},
		"reset, twice":            {moves: [][]string{{"reset"}, {"reset"}}, decision: "reset"},
		"reset, and set after it": {moves: [][]string{{"reset"}, {"set", "PLACE"}}, decision: "reset"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			source := events(t, servers)
			before, _ := published(t, servers, source, 20)
			after, record := published(t, servers, source, 20)
			from := placed(t, before)
			put(t, state(t, servers, "resume_tokens"), before)
			if tt.lost {
				wipe(t, state(t, servers, "resume_tokens"))
				seconds, _ := record.Lookup("began", "startAt").Timestamp()
				from = time.Unix(int64(seconds), 0)
			}
			for _, move := range tt.moves {
				if i := slices.Index(move, "PLACE"); i >= 0 {
					move[i] = after.Lookup("position").StringValue()
				}
				if _, err := say[command.MoveView](t, configured(servers), slices.Concat([]string{"checkpoint"}, move, []string{"--why", "test"})...); err != nil {
					t.Fatal(err)
				}
			}
			run(t, configured(servers)).await(t, "the publisher to lead", leading)
			entry, err := state(t, servers, "stream_gaps").FindOne(t.Context(), bson.D{{Key: "decision", Value: tt.decision}}).Raw()
			if err != nil {
				t.Fatalf("the ledger has no entry: %v", err)
			}
			if got := entry.Lookup("fromTime").Time(); !got.Equal(from) {
				t.Errorf("the entry begins at %v, want %v", got, from)
			}
			if to, there := entry.Lookup("toTime").TimeOK(); !there || to.Before(placed(t, after)) {
				t.Errorf("the entry is %s, want its end not before %v", entry, placed(t, after))
			}
		})
	}
}

// placed is the time of a kept checkpoint's position.
func placed(t *testing.T, checkpoint bson.Raw) time.Time {
	t.Helper()
	seconds, _, err := contract.Position(checkpoint.Lookup("position").StringValue()).ClusterTime()
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(int64(seconds), 0)
}
