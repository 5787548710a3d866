package app_test

import (
	"context"
	"io"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/testserver"
)

// dyingMove gives the place of a checkpoint up, and dies so many updates after it has
// written that down: 0 is before the move, 1 right after it.
func dyingMove(t *testing.T, servers testserver.Servers, after int) {
	t.Helper()
	ctx, die := context.WithCancel(t.Context())
	made, written := 0, 0
	client, err := mongo.Connect(options.Client().ApplyURI(servers.MongoURI).SetMonitor(&event.CommandMonitor{
		Succeeded: func(_ context.Context, e *event.CommandSucceededEvent) {
			if e.CommandName != "update" {
				return
			}
			if written == 2 {
				made++
			}
			if _, err := e.Reply.LookupErr("upserted"); err == nil {
				written++ // the line of the log, and the entry of the ledger
			}
			if written == 2 && made == after {
				die()
			}
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(ctx)) })
	_, err = mongostate.New(client, "change_relay").MoveCheckpoint(ctx, mongostate.Move{
		Stream: "shop.events", Action: "reset", Who: "ann", Why: "test", At: time.Now(), To: &checkpoint.Place{Anew: true},
	})
	if err == nil {
		t.Fatal("the move is made, want it to have died")
	}
}

// TestMove_ThatDiedIsToldFromOneThatWasMade leaves an entry of the ledger open, and
// has the next leader, or the next command, find out what became of it.
func TestMove_ThatDiedIsToldFromOneThatWasMade(t *testing.T) {
	t.Parallel()
	lead := func(t *testing.T, c config.Config) {
		t.Helper()
		p := run(t, c)
		p.await(t, "the publisher to lead", leading)
	}
	cmd := func(t *testing.T, c config.Config) {
		t.Helper()
		if _, err := say[command.MoveView](t, c, "checkpoint", "set", "2026-01-01T00:00:00Z", "--why", "test"); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		after    int
		next     func(*testing.T, config.Config)
		decision string
		done     bool
	}{
		"before it was made, a leader":  {0, lead, "void", false},
		"after it was made, a leader":   {1, lead, "reset", true},
		"before it was made, a command": {0, cmd, "void", false},
		"after it was made, a command":  {1, cmd, "reset", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			published(t, servers, events(t, servers), 20)
			dyingMove(t, servers, tt.after)
			c := configured(servers)
			view, err := say[command.StreamView](t, c, "status")
			if err != nil || view.GapCounts["unfinished"] != 1 || len(view.Gaps) != 1 || !view.Gaps[0].Unfinished || len(view.Warnings) == 0 {
				t.Errorf("status = %+v, %v, want an entry that is unfinished, and a warning", view, err)
			}
			tt.next(t, c)
			entry, err := state(t, servers, "stream_gaps").FindOne(t.Context(), bson.D{{Key: "instance", Value: "ann"}}).Raw()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := entry.LookupErr("unfinished"); err == nil || entry.Lookup("decision").StringValue() != tt.decision {
				t.Errorf("the entry is %s, want it finished, and %s", entry, tt.decision)
			}
			line, err := state(t, servers, "checkpoint_log").FindOne(t.Context(), bson.D{{Key: "who", Value: "ann"}}).Raw()
			if err != nil || line.Lookup("done").Boolean() != tt.done {
				t.Errorf("the log has %s, %v, want done %t", line, err, tt.done)
			}
			untold, err := state(t, servers, "stream_gaps").CountDocuments(t.Context(), bson.D{
				{Key: "cause", Value: "checkpoint reset"}, {Key: "fromTime", Value: bson.D{{Key: "$lt", Value: time.Unix(0, 0)}}},
			})
			if err != nil || untold != 0 {
				t.Errorf("%d entries do not say when the place was given up, %v", untold, err)
			}
			if view, err = say[command.StreamView](t, c, "status"); err != nil || view.GapCounts["unfinished"] != 0 {
				t.Errorf("status = %+v, %v, want nothing unfinished", view, err)
			}
		})
	}
}

// TestMove_ThatDiedInARetiredPartitionIsSettled has the checkpoint retired by a
// repartition that died in its turn, before it settled what was announced there.
func TestMove_ThatDiedInARetiredPartitionIsSettled(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	published(t, servers, events(t, servers), 20)
	dyingMove(t, servers, 0)
	announced, err := state(t, servers, "stream_gaps").FindOne(t.Context(), bson.D{{Key: "unfinished", Value: true}}).Raw()
	if err != nil {
		t.Fatal(err)
	}
	c := configured(servers, split(2), patient)
	if err := runCommand(t, c, io.Discard, "repartition"); err != nil {
		t.Fatal(err)
	}
	put(t, state(t, servers, "stream_gaps"), announced)
	run(t, c).awaitOverview(t, "both partitions to be led", leads(2))
	view, err := say[command.StreamView](t, c, "status")
	if err != nil || view.GapCounts["unfinished"] != 0 {
		t.Errorf("status = %+v, %v, want nothing unfinished", view, err)
	}
}
