package app_test

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/app"
	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// refuse has the server refuse commands of a name, or none where it is empty.
func refuse(t *testing.T, servers testserver.Servers, name string) {
	t.Helper()
	mode := any("alwaysOn")
	if name == "" {
		mode = "off"
	}
	err := testserver.Connect(t, servers.MongoURI).Database("admin").RunCommand(t.Context(), bson.D{
		{Key: "configureFailPoint", Value: "failCommand"},
		{Key: "mode", Value: mode},
		{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{name}}, {Key: "errorCode", Value: 13}}},
	}).Err()
	if err != nil {
		t.Fatal(err)
	}
}

// TestMove_OfALostStreamThatDiedIsNoBeginning ends a command after it has made the
// record, and after it has claimed the checkpoint.
func TestMove_OfALostStreamThatDiedIsNoBeginning(t *testing.T) {
	t.Parallel()
	all := []string{"streams", "resume_tokens", "stream_gaps", "checkpoint_log"}
	ledger, log := []string{"streams", "resume_tokens", "checkpoint_log"}, all[:3] // what is lost where that is left
	for name, tt := range map[string]struct {
		lost    []string
		dies    string // at the first command of this name
		actions []string
		above   int64
	}{
		"the ledger is left, at the record":     {ledger, "findAndModify", []string{"set"}, 1},
		"the ledger is left, at the checkpoint": {ledger, "update", []string{"reset"}, 1},
		"the log is left, at the record":        {log, "findAndModify", []string{"set"}, 2},
		"nothing is left, at the record":        {all, "findAndModify", []string{"set", "reset"}, 0},
		"nothing is left, at the checkpoint":    {all, "update", []string{"set"}, 0},
	} {
		for _, action := range tt.actions {
			t.Run(name+", "+action, func(t *testing.T) {
				t.Parallel()
				servers := testserver.Start(t)
				source := events(t, servers)
				place := time.Now().Add(-time.Minute).Format(time.RFC3339)
				published(t, servers, source, 10)
				if _, err := say[command.MoveView](t, configured(servers), "checkpoint", "set", place, "--why", "so that the log has a term"); err != nil {
					t.Fatal(err)
				}
				for _, collection := range tt.lost {
					wipe(t, state(t, servers, collection))
				}
				decide := []string{"checkpoint", action, "--new", "--why", "test"}
				if action == "set" {
					decide = append(decide, place)
				}
				refuse(t, servers, tt.dies)
				if _, err := say[command.MoveView](t, configured(servers), decide...); err == nil {
					t.Fatal("the command ended well, want it to have died")
				}
				refuse(t, servers, "")
				record := only(t, state(t, servers, "streams"))
				if min(record.Lookup("term").AsInt64(), record.Lookup("confirmed").AsInt64()) < tt.above {
					t.Errorf("the record is %s, want its terms above those that were given out: they go to %d", record, tt.above)
				}
				p := run(t, configured(servers))
				shown := p.await(t, "the publisher to halt", func(s status.Status) bool { return s.State == "halted" && s.GapCounts["stop"] > 0 })
				if begun, err := state(t, servers, "stream_gaps").CountDocuments(t.Context(),
					bson.D{{Key: "decision", Value: "begin"}, {Key: "toTime", Value: time.Unix(0, 0)}}); err != nil || begun != 0 {
					t.Errorf("%d entries of the ledger say that the stream began in 1970, %v", begun, err)
				}
				source.write(t, 10, 5)
				commands := remedies(shown.LastError, place)
				at := slices.IndexFunc(commands, func(args []string) bool { return slices.Contains(args, "set") })
				if at < 0 {
					t.Fatalf("%q names no command", shown.LastError)
				}
				var err error
				testserver.Eventually(t, "the halt to be written down", func() bool {
					_, err = say[command.MoveView](t, configured(servers), commands[at]...)
					return err == nil || !strings.Contains(err.Error(), "is held by")
				})
				if err != nil {
					t.Fatalf("%q = %v", commands[at], err)
				}
				p.await(t, "all since the place to be sent", func(s status.Status) bool { return leading(s) && s.Sent >= 20 && s.Term > tt.above })
				source.wantAll(t, source.drain(t, servers))
			})
		}
	}
}

// TestMove_OfALostStreamThatDiedIsNoBeginningOfAPartition ends a command at the record
// of the first of two partitions.
func TestMove_OfALostStreamThatDiedIsNoBeginningOfAPartition(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	events(t, servers).write(t, 20, 5)
	c := configured(servers, split(2), patient, func(c *config.Config) { c.StartAt = "snapshot" })
	refuse(t, servers, "findAndModify")
	if _, err := say[command.MoveView](t, c, "checkpoint", "set", "--new", "--why", "test", time.Now().Add(-time.Minute).Format(time.RFC3339)); err == nil {
		t.Fatal("the command ended well, want it to have died")
	}
	refuse(t, servers, "")
	p := run(t, c)
	p.awaitOverview(t, "both partitions to halt", func(o app.Overview) bool {
		halted := slices.DeleteFunc(o.Streams, func(s status.Status) bool { return !strings.Contains(s.LastError, "checkpoint without a place") })
		return len(halted) == 2
	})
}

// TestRepartition_BesideALeaderThatBeginsIsSeenByIt has a publisher begin between the
// look of a repartition and what it does then, and sends it nothing to save after.
func TestRepartition_BesideALeaderThatBeginsIsSeenByIt(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	published(t, servers, source, 20)
	var old *process
	begin := func() {
		old = run(t, configured(servers))
		old.await(t, "the publisher to lead", leading)
	}
	client, err := mongo.Connect(options.Client().ApplyURI(servers.MongoURI).SetMonitor(&event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			if e.CommandName == "insert" && e.Command.Lookup("insert").StringValue() == "replaced_checkpoints" {
				begin()
			}
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) })
	_, err = mongostate.New(client, "change_relay").Repartition(t.Context(), mongostate.Repartition{
		Stream: "shop.events", Lease: "publisher", To: 2, By: "ann",
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	old.awaitHalt(t, "stream retired", "PARTITIONS")
	source.write(t, 20, 5)
	run(t, configured(servers, split(2))).awaitOverview(t, "both partitions to be led", leads(2))
	source.wantAll(t, source.drain(t, servers))
}

// TestMove_ToAPositionIsUnderTheOptionsThatTheRecordKeeps loses the checkpoint, and
// with it the options under which the position was given out.
func TestMove_ToAPositionIsUnderTheOptionsThatTheRecordKeeps(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	checkpoint, _ := published(t, servers, events(t, servers), 20)
	wipe(t, state(t, servers, "resume_tokens"))
	if _, err := say[command.MoveView](t, configured(servers), "checkpoint", "set", "--why", "test", checkpoint.Lookup("position").StringValue()); err != nil {
		t.Fatal(err)
	}
	filtered := run(t, configured(servers, func(c *config.Config) { c.SourceFilter = `{"fullDocument.type": "OrderPlaced"}` }))
	shown := filtered.await(t, "the publisher with a filter to halt", func(s status.Status) bool { return s.State == "halted" || leading(s) })
	if !strings.Contains(shown.LastError, "options") {
		t.Errorf("status is %+v, want it to refuse the position: it is of other options", shown)
	}
}

// TestMove_ToAPositionThatTakesLongToReachIsWaitedFor has the source take longer to find the
// position than a command may to ask anything else, and then not say whether it does.
func TestMove_ToAPositionThatTakesLongToReachIsWaitedFor(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	published(t, servers, events(t, servers), 10)
	c := configured(servers)
	shown, err := say[command.CheckpointView](t, c, "checkpoint", "show")
	if err != nil {
		t.Fatal(err)
	}
	decide := []string{"checkpoint", "set", string(shown.Position), "--why", "test"}
	err = testserver.Connect(t, servers.MongoURI).Database("admin").RunCommand(t.Context(), bson.D{
		{Key: "configureFailPoint", Value: "failCommand"},
		{Key: "mode", Value: bson.D{{Key: "times", Value: 2}}}, // the driver tries once more
		{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"aggregate"}}, {Key: "closeConnection", Value: true}}},
	}).Err()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := say[command.MoveView](t, c, decide...); err == nil || strings.Contains(err.Error(), "does not go on") || !strings.Contains(err.Error(), "not known") {
		t.Errorf("without an answer it is %v, want that nothing is known", err)
	}
	testserver.Fault(t, servers, `{"kind":"mongodb.delay","commands":["aggregate"],"delay":"31s","times":1}`)
	var stderr bytes.Buffer
	if _, err := program(c).Do(t.Context(), decide, io.Discard, &stderr); err != nil || !strings.Contains(stderr.String(), "the source has looked for the position") {
		t.Errorf("set = %v, having said %q, want it waited for", err, &stderr)
	}
}
