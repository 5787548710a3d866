package app_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/cli"
	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// said is what a parked command writes in one line.
type said struct {
	ID, Outcome, Error, Reason, Resolved string
	AggregateID                          string `json:"aggregate_id"`
	Actions                              []struct{ Action, By, Note string }
	Change                               struct {
		FullDocument struct{ Kind string }
	}
}

// runCommand runs a command of the binary.
func runCommand(t *testing.T, c config.Config, stdout io.Writer, args ...string) error {
	t.Helper()
	_, err := program(c).Do(t.Context(), args, stdout, io.Discard)
	return err
}

// program is the binary with that configuration.
func program(c config.Config) cli.Program {
	return command.Program("test", func() (config.Config, error) { return c, nil })
}

// lines runs a command and reads what it says.
func lines(t *testing.T, c config.Config, args ...string) ([]said, error) {
	t.Helper()
	var stdout bytes.Buffer
	err := runCommand(t, c, &stdout, args...)
	var all []said
	for decoder := json.NewDecoder(&stdout); decoder.More(); {
		var line said
		if err := decoder.Decode(&line); err != nil {
			t.Fatal(err)
		}
		all = append(all, line)
	}
	return all, err
}

// park makes a publisher park n events of one aggregate, which have kind instead
// of type, and returns their ids. It goes on running.
func park(t *testing.T, c config.Config, servers testserver.Servers, n int) ([]string, *process) {
	t.Helper()
	p := run(t, c)
	p.await(t, "the publisher to lead", leading)
	source := events(t, servers)
	for version := range n {
		_, err := source.InsertOne(t.Context(), bson.D{
			{Key: "aggregateId", Value: "order-1"}, {Key: "version", Value: version + 1}, {Key: "kind", Value: "OrderPlaced"},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	p.await(t, "the changes to be parked", func(s status.Status) bool { return s.Parked == int64(n) && s.InFlight == 0 })
	listed, err := lines(t, c, "parked", "list")
	if err != nil || len(listed) != n {
		t.Fatalf("listed %+v, %v, want %d changes", listed, err, n)
	}
	var ids []string
	for _, line := range listed {
		ids = append(ids, line.ID)
	}
	return ids, p
}

func TestParked_ParkedChangesAreReplayedInOrderOnceTheyCanBeMapped(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers)
	park(t, c, servers, 3)
	if got, err := lines(t, c, "parked", "replay", "--all"); err == nil || len(got) != 3 || got[0].Outcome != "failed" || !strings.Contains(got[0].Error, `"type"`) {
		t.Errorf("replay without a change of the mapping says %+v, %v, want failures that name the field", got, err)
	}
	c.FieldType = "kind"
	got, err := lines(t, c, "parked", "replay", "--all")
	if err != nil || len(got) != 3 || got[2].Outcome != "replayed" || got[2].AggregateID != "order-1" {
		t.Fatalf("replay says %+v, %v, want three replayed", got, err)
	}
	for n, m := range receive(t, servers, 3) {
		if m.ApplicationProperties["cloudEvents_aggregateversion"] != int64(n+1) {
			t.Errorf("message %d is version %v", n, m.ApplicationProperties["cloudEvents_aggregateversion"])
		}
	}
	if left, err := lines(t, c, "parked", "list"); err != nil || len(left) != 0 {
		t.Errorf("list says %+v, %v, want nothing left", left, err)
	}
	all, err := lines(t, c, "parked", "list", "--all")
	if err != nil || len(all) != 3 || all[0].Resolved != "replayed" || len(all[0].Actions) != 1 || all[0].Actions[0].By != "a" || all[0].Actions[0].Note == "" {
		t.Errorf("list --all says %+v, %v, want who replayed what", all, err)
	}
	if again, err := lines(t, c, "parked", "replay", got[0].ID); err == nil || !strings.Contains(again[0].Error, "was replayed") {
		t.Errorf("a second replay says %+v, %v, want a refusal", again, err)
	}
}

func TestParked_AReplayDoesNotTurnAnAggregateAround(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers)
	ids, _ := park(t, c, servers, 3)
	c.FieldType = "kind"
	if got, err := lines(t, c, "parked", "replay", ids[1]); err == nil || !strings.Contains(got[0].Error, "earlier change") {
		t.Errorf("replay of the second says %+v, %v, want a refusal", got, err)
	}
	if got, err := lines(t, c, "parked", "discard", ids[0]); err != nil || got[0].Outcome != "discarded" {
		t.Errorf("discard says %+v, %v", got, err)
	}
	if got, err := lines(t, c, "parked", "replay", ids[2], ids[1]); err != nil || len(got) != 2 || got[0].ID != ids[1] || got[1].ID != ids[2] {
		t.Errorf("replay of the rest says %+v, %v, want the older first", got, err)
	}
	if n := len(receive(t, servers, 2)); n != 2 {
		t.Errorf("%d messages arrived, want 2", n)
	}
}

// TestAReplay_WaitsForAnEarlierChangeOfNoKnownAggregate has an older change that
// still cannot be mapped.
func TestAReplay_WaitsForAnEarlierChangeOfNoKnownAggregate(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers)
	p := run(t, c)
	p.await(t, "the publisher to lead", leading)
	source := events(t, servers)
	for version, field := range []string{"neither", "kind", "kind"} {
		_, err := source.InsertOne(t.Context(), bson.D{
			{Key: "aggregateId", Value: "order-1"}, {Key: "version", Value: version + 1}, {Key: field, Value: "OrderPlaced"},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	p.await(t, "the changes to be parked", func(s status.Status) bool { return s.Parked == 3 && s.InFlight == 0 })
	c.FieldType = "kind"
	got, err := lines(t, c, "parked", "replay", "--all")
	if err == nil || len(got) != 3 || got[0].Outcome != "failed" {
		t.Fatalf("replay says %+v, %v, want what still cannot be mapped to fail", got, err)
	}
	for _, later := range got[1:] {
		if later.Outcome != "failed" || !strings.Contains(later.Error, got[0].ID) {
			t.Errorf("replay of a later change says %+v, want it to wait for %s", later, got[0].ID)
		}
	}
	if only, err := lines(t, c, "parked", "replay", got[2].ID); err == nil || !strings.Contains(only[0].Error, got[0].ID) {
		t.Errorf("replay of the last alone says %+v, %v, want it to wait", only, err)
	}
	if _, err := lines(t, c, "parked", "discard", got[0].ID); err != nil {
		t.Fatal(err)
	}
	if rest, err := lines(t, c, "parked", "replay", "--all"); err != nil || len(rest) != 2 {
		t.Errorf("replay of the rest says %+v, %v, want both sent", rest, err)
	}
	for n, m := range receive(t, servers, 2) {
		if m.ApplicationProperties["cloudEvents_aggregateversion"] != int64(n+2) {
			t.Errorf("message %d is version %v", n, m.ApplicationProperties["cloudEvents_aggregateversion"])
		}
	}
}

func TestParked_OneOperatorAtATimeHasAParkedChange(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers)
	ids, _ := park(t, c, servers, 1)
	c.FieldType = "kind"
	changes := testserver.Connect(t, servers.MongoURI).Database("change_relay").Collection("parked_changes")
	hour := bson.A{bson.D{{Key: "$set", Value: bson.D{{Key: "claim", Value: "x"}, {Key: "claimedUntil", Value: bson.D{{Key: "$add", Value: bson.A{"$$NOW", 3600_000}}}}}}}}
	if _, err := changes.UpdateByID(t.Context(), ids[0], hour); err != nil {
		t.Fatal(err)
	}
	for _, action := range []string{"replay", "discard"} {
		if got, err := lines(t, c, "parked", action, ids[0]); err == nil || !strings.Contains(got[0].Error, "somebody else") {
			t.Errorf("%s says %+v, %v, want that somebody else has it", action, got, err)
		}
	}
}

func TestParked_AFailedReplayIsRecordedAndLeavesTheChangeParked(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers)
	ids, _ := park(t, c, servers, 1)
	c.FieldType, c.ServiceBusTopic = "kind", "nowhere"
	if _, err := lines(t, c, "parked", "replay", ids[0]); err == nil || !strings.Contains(err.Error(), "SERVICEBUS_TOPIC") {
		t.Errorf("a replay to a topic that is not the stream's = %v, want it refused", err)
	}
	edit(t, state(t, servers, "streams"), "$set", "settings.SERVICEBUS_TOPIC", "nowhere")
	if _, err := lines(t, c, "parked", "replay", ids[0]); err == nil {
		t.Error("a replay to a topic that is not there works")
	}
	shown, err := lines(t, c, "parked", "show", ids[0])
	if err != nil || shown[0].Resolved != "" || shown[0].Change.FullDocument.Kind != "OrderPlaced" ||
		len(shown[0].Actions) != 1 || shown[0].Actions[0].Action != "failed" || !strings.Contains(shown[0].Actions[0].Note, "nowhere") {
		t.Errorf("show says %+v, %v, want the change and the attempt", shown, err)
	}
	edit(t, state(t, servers, "streams"), "$set", "settings.SERVICEBUS_TOPIC", testserver.Topic)
	c.ServiceBusTopic = testserver.Topic
	if got, err := lines(t, c, "parked", "replay", ids[0]); err != nil || got[0].Outcome != "replayed" {
		t.Errorf("the next replay says %+v, %v", got, err)
	}
}

// TestParked_WhatWasDealtWithIsParkedAgainWhereTheStreamGoesBackBeforeIt replays a change
// under settings that can, and discards another; then the stream, whose settings cannot,
// goes back before both.
func TestParked_WhatWasDealtWithIsParkedAgainWhereTheStreamGoesBackBeforeIt(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers)
	ids, p := park(t, c, servers, 2)
	mapped := c
	mapped.FieldType = "kind"
	for i, args := range [][]string{{"replay"}, {"discard"}} {
		if _, err := lines(t, mapped, "parked", args[0], ids[i]); err != nil {
			t.Fatal(err)
		}
	}
	p = p.again(t, c)
	if left, err := lines(t, c, "parked", "list"); err != nil || len(left) != 0 {
		t.Errorf("list says %+v, %v after another term, want nothing: it began behind both", left, err)
	}
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	var change struct{ Position contract.Position }
	if err := bson.Unmarshal(only(t, state(t, servers, "parked_changes")), &change); err != nil {
		t.Fatal(err)
	}
	seconds, _, err := change.Position.ClusterTime()
	if err != nil {
		t.Fatal(err)
	}
	before := time.Unix(int64(seconds)-1, 0).UTC().Format(time.RFC3339)
	if err := runCommand(t, c, io.Discard, "checkpoint", "set", before, "--why", "a new namespace"); err != nil {
		t.Fatal(err)
	}
	p = run(t, c)
	p.await(t, "both to be read again", func(s status.Status) bool { return s.Read == 2 && s.InFlight == 0 })
	left, err := lines(t, c, "parked", "list")
	if err != nil || len(left) != 2 {
		t.Fatalf("list says %+v, %v, want both", left, err)
	}
	for i, was := range []string{"replayed", "discarded"} {
		if did := left[i].Actions; len(did) != 2 || did[0].Action != was || did[1].Action != "parked" {
			t.Errorf("what was done with the one that was %s is %+v, want it kept", was, did)
		}
	}
}

func TestAPurge_LeavesWhatWasDiscardedInTheLedger(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers)
	ids, _ := park(t, c, servers, 3)
	c.FieldType = "kind"
	if _, err := lines(t, c, "parked", "discard", ids[0], ids[1]); err != nil {
		t.Fatal(err)
	}
	if _, err := lines(t, c, "parked", "replay", ids[2]); err != nil {
		t.Fatal(err)
	}
	testserver.Eventually(t, "all to be purged", func() bool {
		if err := runCommand(t, c, io.Discard, "parked", "purge", "--older-than", "1ms"); err != nil {
			t.Fatal(err)
		}
		left, err := lines(t, c, "parked", "list", "--all")
		return err == nil && len(left) == 0
	})
	cursor, err := state(t, servers, "stream_gaps").Find(t.Context(), bson.D{{Key: "decision", Value: "discarded"}})
	if err != nil {
		t.Fatal(err)
	}
	var entries []struct{ Error, Instance string }
	if err := cursor.All(t.Context(), &entries); err != nil {
		t.Fatal(err)
	}
	var said string
	for _, entry := range entries {
		said += entry.Error
	}
	if !strings.Contains(said, ids[0]) || !strings.Contains(said, ids[1]) || strings.Contains(said, ids[2]) {
		t.Errorf("the ledger says %+v, want %v and no more", entries, ids[:2])
	}
}

// TestPurge_OfAStreamWithPartitionsIsShownOnce has a purge's entry be that of the
// whole stream, which none of its partitions is.
func TestPurge_OfAStreamWithPartitionsIsShownOnce(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers, split(2), patient)
	p := run(t, c)
	p.awaitOverview(t, "both partitions to be led", leads(2))
	events(t, servers).unmappable(t)
	var listed []said
	testserver.Eventually(t, "the change to be parked", func() bool {
		listed, _ = lines(t, c, "parked", "list")
		return len(listed) == 1
	})
	if _, err := lines(t, c, "parked", "discard", listed[0].ID); err != nil {
		t.Fatal(err)
	}
	testserver.Eventually(t, "it to be purged", func() bool {
		if err := runCommand(t, c, io.Discard, "parked", "purge", "--older-than", "1ms"); err != nil {
			t.Fatal(err)
		}
		left, err := lines(t, c, "parked", "list", "--all")
		return err == nil && len(left) == 0
	})
	var out bytes.Buffer
	if err := runCommand(t, c, &out, "status", "--json"); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "were discarded and never sent: "+listed[0].ID); n != 1 {
		t.Errorf("status says %d times what was purged, want once:\n%s", n, &out)
	}
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	again := run(t, c)
	again.awaitOverview(t, "both partitions to be led again", leads(2))
	if _, body := again.get(t, "/status"); strings.Count(body, listed[0].ID) != 1 {
		t.Errorf("/status does not say once what was purged:\n%s", body)
	}
}

// TestParked_AnEnvironmentWithoutTheStreamIsNotAnEmptyList looks where no stream of
// the name is, with the commands that only read.
func TestParked_AnEnvironmentWithoutTheStreamIsNotAnEmptyList(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	published(t, servers, events(t, servers), 5)
	for _, args := range [][]string{{"parked", "list"}, {"parked", "list", "--all"}, {"checkpoint", "show"}} {
		if err := runCommand(t, configured(servers), io.Discard, args...); err != nil {
			t.Errorf("%q = %v, want nil", args, err)
		}
	}
	elsewhere := configured(servers, func(c *config.Config) { c.StreamName = "shop.orders" })
	for _, args := range [][]string{{"parked", "list"}, {"parked", "list", "--all"}, {"parked", "show", "a"}, {"checkpoint", "show"}} {
		if err := runCommand(t, elsewhere, io.Discard, args...); err == nil || !strings.Contains(err.Error(), `nothing is known of a stream "shop.orders"`) {
			t.Errorf("%q = %v, want it to say that there is no such stream", args, err)
		}
	}
}

func TestParked_ArgumentsOfParkedCommandsAreChecked(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"parked", "list", "x"},
		{"parked", "show"},
		{"parked", "show", "a", "b"},
		{"parked", "replay"},
		{"parked", "replay", "--all", "a"},
		{"parked", "discard"},
		{"parked", "discard", "--all"},
		{"parked", "purge"},
		{"parked", "purge", "--older-than", "-1h"},
		{"parked", "purge", "--older-than", "soon"},
		{"parked", "purge", "--older-than", "1h", "x"},
	} {
		if err := runCommand(t, configured(testserver.Servers{MongoURI: "mongodb://localhost", ServiceBus: "Endpoint=sb://x/;SharedAccessKeyName=a;SharedAccessKey=b"}), io.Discard, args...); !errors.Is(err, cli.ErrUsage) {
			t.Errorf("%q: %v, want a usage error", args, err)
		}
	}
}

// TestPark_ACopiedDocumentOfAnotherCollectionIsAnotherOne copies a document that
// cannot be mapped, gives it up, and puts another one of its key in its place.
func TestPark_ACopiedDocumentOfAnotherCollectionIsAnotherOne(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers, func(c *config.Config) {
		c.StartAt, c.Mode, c.DocumentAggregateID = "snapshot", "documents", "customer"
		c.FullDocument, c.FullDocumentBeforeChange = "updateLookup", "off"
		c.SourceCollection, c.StreamName = "orders", "shop.orders"
	})
	client := testserver.Connect(t, servers.MongoURI)
	shop := client.Database("shop")
	add := func(collection, content string) {
		if _, err := shop.Collection(collection).InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}, {Key: "content", Value: content}}); err != nil {
			t.Fatal(err)
		}
	}
	copied := func() string {
		p := run(t, c)
		p.await(t, "the document to be parked", func(s status.Status) bool { return leading(s) && s.Copy == nil && s.Parked == 1 })
		if err := p.quit(); err != nil {
			t.Fatal(err)
		}
		left, err := lines(t, c, "parked", "list")
		if err != nil || len(left) != 1 {
			t.Fatalf("list says %+v, %v, want one", left, err)
		}
		return left[0].ID
	}
	add("orders", "first")
	first := copied()
	if _, err := lines(t, c, "parked", "discard", first); err != nil {
		t.Fatal(err)
	}
	add("others", "second")
	rename := bson.D{{Key: "renameCollection", Value: "shop.others"}, {Key: "to", Value: "shop.orders"}, {Key: "dropTarget", Value: true}}
	if err := client.Database("admin").RunCommand(t.Context(), rename).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := say[command.MoveView](t, c, "checkpoint", "reset", "--why", "another collection"); err != nil {
		t.Fatal(err)
	}
	if second := copied(); second == first {
		t.Errorf("both are parked as %s", first)
	}
}

func TestPark_ABrakeHaltsTheStreamInFrontOfTheNextUntilSomeAreDealtWith(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers, func(c *config.Config) { c.ParkLimit = 3 })
	ids, first := park(t, c, servers, 3)
	source := events(t, servers)
	if _, err := source.InsertOne(t.Context(), bson.D{{Key: "type", Value: "no aggregate"}}); err != nil {
		t.Fatal(err)
	}
	shown := first.await(t, "the stream to halt", func(s status.Status) bool { return s.State == "halted" })
	if shown.HaltedReason != "too many changes parked" { // by which the page says which command to use
		t.Errorf("halted reason is %q", shown.HaltedReason)
	}
	for _, want := range []string{"PARK_LIMIT", "publisher parked replay --all", "aggregateId"} {
		if !strings.Contains(shown.LastError, want) {
			t.Errorf("last error is %q, without %q", shown.LastError, want)
		}
	}
	if _, body := first.get(t, "/metrics"); !strings.Contains(body, `publisher_halted{reason="too many changes parked"} 1`) {
		t.Error("/metrics does not say why publishing is halted")
	}
	if err := first.quit(); err != nil {
		t.Fatal(err)
	}
	again := run(t, c) // a restart parks no more than the limit, either
	again.await(t, "the stream to halt again", func(s status.Status) bool { return s.State == "halted" && s.Parked == 3 })
	if err := again.quit(); err != nil {
		t.Fatal(err)
	}
	if _, err := lines(t, c, "parked", "discard", ids[0]); err != nil {
		t.Fatal(err)
	}
	last := run(t, c)
	last.await(t, "the stream to go on", func(s status.Status) bool { return leading(s) && s.Parked == 3 && s.InFlight == 0 })
	var purged bytes.Buffer
	if err := runCommand(t, c, &purged, "parked", "purge", "--older-than", "1h", "--json"); err != nil || !strings.Contains(purged.String(), `"purged":0`) {
		t.Errorf("purge says %s, %v, want that nothing is as old", &purged, err)
	}
}

// TestPark_WhatIsDealtWithTakesNoRoom discards under a leader as many changes as may be
// parked, and has one more be parked.
func TestPark_WhatIsDealtWithTakesNoRoom(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers, func(c *config.Config) { c.ParkLimit = 3 })
	ids, p := park(t, c, servers, 3)
	if _, err := lines(t, c, append([]string{"parked", "discard"}, ids...)...); err != nil {
		t.Fatal(err)
	}
	p.await(t, "nothing to be parked", func(s status.Status) bool { return leading(s) && s.Parked == 0 })
	events(t, servers).unmappable(t)
	p.await(t, "one more to be parked", func(s status.Status) bool { return leading(s) && s.Parked == 1 && s.InFlight == 0 })
	if _, body := p.get(t, "/metrics"); !strings.Contains(body, "publisher_parked 1") {
		t.Error("/metrics does not count what is parked")
	}
}

// TestPark_TheBrakeCountsNothingTwice goes back before as many parked changes as there
// may be.
func TestPark_TheBrakeCountsNothingTwice(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers, func(c *config.Config) { c.ParkLimit = 3 })
	before := time.Now().Add(-time.Second).UTC().Format(time.RFC3339)
	ids, p := park(t, c, servers, 3)
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	if err := runCommand(t, c, io.Discard, "checkpoint", "set", before, "--why", "test"); err != nil {
		t.Fatal(err)
	}
	source := events(t, servers)
	source.write(t, 5, 5)
	p = run(t, c)
	p.await(t, "what comes behind them to be sent", func(s status.Status) bool { return leading(s) && s.Sent >= 5 && s.Parked == 3 })
	source.unmappable(t)
	p.await(t, "the stream to halt in front of a fourth", func(s status.Status) bool { return s.State == "halted" && s.Parked == 3 })
	if _, err := lines(t, c, "parked", "discard", ids[0]); err != nil {
		t.Fatal(err)
	}
	p.again(t, c).await(t, "the fourth to be parked", func(s status.Status) bool { return leading(s) && s.Parked == 3 && s.InFlight == 0 })
}

// TestReplay_BySettingsOfAnotherOrderIsRefusedUnlessMeant replays what lacks its type with
// settings that would give the event another aggregate, or another place in it.
func TestReplay_BySettingsOfAnotherOrderIsRefusedUnlessMeant(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers)
	park(t, c, servers, 1)
	for want, edit := range map[string]func(*config.Config){
		`FIELD_VERSION was "version", now it is "-"`:                func(c *config.Config) { c.FieldVersion = "-" },
		`FIELD_AGGREGATE_ID was "aggregateId", now it is "version"`: func(c *config.Config) { c.FieldAggregateID = "version" },
	} {
		other := c
		other.FieldType = "kind"
		edit(&other)
		if got, err := lines(t, other, "parked", "replay", "--all"); err == nil || len(got) != 0 || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--accept-settings") {
			t.Errorf("replay says %+v, %v, want a refusal with %q", got, err, want)
		}
		if err := runCommand(t, other, io.Discard, "parked", "replay", "--all", "--accept-settings"); !errors.Is(err, cli.ErrUsage) {
			t.Errorf("replay without a reason = %v, want it refused", err)
		}
	}
	if n, err := state(t, servers, "stream_gaps").CountDocuments(t.Context(), bson.D{{Key: "decision", Value: "report"}}); err != nil || n != 0 {
		t.Errorf("the ledger has %d entries of what was refused, %v", n, err)
	}
	c.FieldType, c.FieldVersion = "kind", "-"
	if got, err := lines(t, c, "parked", "replay", "--all", "--accept-settings", "--why", "they are right now"); err != nil || got[0].Outcome != "replayed" {
		t.Fatalf("replay says %+v, %v, want it done", got, err)
	}
	entry, err := state(t, servers, "stream_gaps").FindOne(t.Context(), bson.D{{Key: "decision", Value: "report"}}).Raw()
	if text := entry.String(); err != nil || !strings.Contains(text, "they are right now") || !strings.Contains(text, "FIELD_VERSION was") {
		t.Errorf("the ledger says %s, %v, want the settings and why", text, err)
	}
}

// Every command takes --json: those that print JSON anyway as well.
func TestCommand_TakesJSON(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"status", "checkpoint show", "checkpoint set now", "checkpoint reset", "checkpoint accept", "doctor", "repartition", "parked purge",
		"parked list --all", "parked show x", "parked replay x", "parked discard x", "setup", "health", "version",
	} {
		if err := runCommand(t, config.Config{}, io.Discard, append(strings.Fields(args), "--json", "--help")...); err != nil {
			t.Errorf("%s --json: %v", args, err)
		}
	}
	if err := runCommand(t, config.Config{}, io.Discard, "--json"); !errors.Is(err, cli.ErrUsage) {
		t.Errorf("--json alone: %v, want it refused", err)
	}
}
