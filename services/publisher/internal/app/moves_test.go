package app_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/app"
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
	ledger, all := []string{"streams", "resume_tokens"}, []string{"streams", "resume_tokens", "stream_gaps", "checkpoint_log"}
	for name, tt := range map[string]struct {
		lost  []string
		dies  string // at the first command of this name
		above int64
	}{
		"the ledger is left, at the record":      {ledger, "findAndModify", 2},
		"the ledger is left, at the checkpoint":  {ledger, "update", 2},
		"nothing is left, at the record":         {all, "findAndModify", 0},
		"nothing is left, at the checkpoint":     {all, "update", 0},
		"nothing but the log, before the record": {all[:3], "findAndModify", 2},
	} {
		for _, action := range []string{"set", "reset"} {
			t.Run(name+", "+action, func(t *testing.T) {
				t.Parallel()
				servers := testserver.Start(t)
				source := events(t, servers)
				place := time.Now().Add(-time.Minute).Format(time.RFC3339)
				published(t, servers, source, 10)
				if _, err := say[app.MoveView](t, config(servers), "checkpoint", "set", place, "--why", "so that the log has a term"); err != nil {
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
				if _, err := say[app.MoveView](t, config(servers), decide...); err == nil {
					t.Fatal("the command ended well, want it to have died")
				}
				refuse(t, servers, "")
				p := run(t, config(servers))
				status := p.await(t, "the publisher to halt", func(s app.Status) bool { return s.State == "halted" && s.GapCounts["stop"] > 0 })
				if begun, err := state(t, servers, "stream_gaps").CountDocuments(t.Context(),
					bson.D{{Key: "decision", Value: "begin"}, {Key: "toTime", Value: time.Unix(0, 0)}}); err != nil || begun != 0 {
					t.Errorf("%d entries of the ledger say that the stream began in 1970, %v", begun, err)
				}
				source.write(t, 10, 5)
				commands := remedies(status.LastError, place)
				at := slices.IndexFunc(commands, func(args []string) bool { return slices.Contains(args, "set") })
				if at < 0 {
					t.Fatalf("%q names no command", status.LastError)
				}
				var err error
				testserver.Eventually(t, "the halt to be written down", func() bool {
					_, err = say[app.MoveView](t, config(servers), commands[at]...)
					return err == nil || !strings.Contains(err.Error(), "is held by")
				})
				if err != nil {
					t.Fatalf("%q = %v", commands[at], err)
				}
				p.await(t, "all since the place to be sent", func(s app.Status) bool { return leading(s) && s.Sent >= 20 && s.Term > tt.above })
				source.wantAll(t, source.drain(t, servers))
			})
		}
	}
}
