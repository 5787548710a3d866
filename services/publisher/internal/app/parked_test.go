package app_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/app"
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

// command runs a command of the binary.
func command(t *testing.T, c app.Config, stdout io.Writer, args ...string) error {
	t.Helper()
	found, rest, known := app.Find("test", args)
	if !known {
		t.Fatalf("no command %q", args)
	}
	return found.Run(t.Context(), app.Call{Config: c, Args: rest, Stdout: stdout, Stderr: io.Discard})
}

// lines runs a command and reads what it says.
func lines(t *testing.T, c app.Config, args ...string) ([]said, error) {
	t.Helper()
	var stdout bytes.Buffer
	err := command(t, c, &stdout, args...)
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
func park(t *testing.T, c app.Config, servers testserver.Servers, n int) ([]string, *process) {
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
	p.await(t, "the changes to be parked", func(s app.Status) bool { return s.Parked == int64(n) && s.InFlight == 0 })
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

func TestParkedChangesAreReplayedInOrderOnceTheyCanBeMapped(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := config(servers)
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

func TestAReplayDoesNotTurnAnAggregateAround(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := config(servers)
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

func TestOneOperatorAtATimeHasAParkedChange(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := config(servers)
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

func TestAFailedReplayIsRecordedAndLeavesTheChangeParked(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := config(servers)
	ids, _ := park(t, c, servers, 1)
	c.FieldType, c.ServiceBusTopic = "kind", "nowhere"
	if _, err := lines(t, c, "parked", "replay", ids[0]); err == nil {
		t.Error("a replay to a topic that is not there works")
	}
	shown, err := lines(t, c, "parked", "show", ids[0])
	if err != nil || shown[0].Resolved != "" || shown[0].Change.FullDocument.Kind != "OrderPlaced" ||
		len(shown[0].Actions) != 1 || shown[0].Actions[0].Action != "failed" || !strings.Contains(shown[0].Actions[0].Note, "nowhere") {
		t.Errorf("show says %+v, %v, want the change and the attempt", shown, err)
	}
	c.ServiceBusTopic = testserver.Topic
	if got, err := lines(t, c, "parked", "replay", ids[0]); err != nil || got[0].Outcome != "replayed" {
		t.Errorf("the next replay says %+v, %v", got, err)
	}
}

func TestADiscardedChangeIsNotParkedAnewWhenItIsReadAgain(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := config(servers)
	ids, p := park(t, c, servers, 1)
	if _, err := lines(t, c, "parked", "discard", ids[0]); err != nil {
		t.Fatal(err)
	}
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	state := testserver.Connect(t, servers.MongoURI).Database("change_relay")
	var change struct{ Position contract.Position }
	if err := state.Collection("parked_changes").FindOne(t.Context(), bson.D{}).Decode(&change); err != nil {
		t.Fatal(err)
	}
	seconds, increment, err := change.Position.ClusterTime()
	if err != nil {
		t.Fatal(err)
	}
	start := bson.Timestamp{T: seconds, I: increment}
	if _, err := state.Collection("resume_tokens").ReplaceOne(t.Context(), bson.D{}, bson.D{{Key: "term", Value: int64(7)}, {Key: "startAt", Value: start}}); err != nil {
		t.Fatal(err)
	}
	again := run(t, c)
	again.await(t, "the change to be read again", func(s app.Status) bool { return s.Read == 1 && s.InFlight == 0 })
	if left, err := lines(t, c, "parked", "list"); err != nil || len(left) != 0 {
		t.Errorf("list says %+v, %v, want nothing", left, err)
	}
}

func TestArgumentsOfParkedCommandsAreChecked(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"parked", "list", "x"},
		{"parked", "show"},
		{"parked", "show", "a", "b"},
		{"parked", "replay"},
		{"parked", "replay", "--all", "a"},
		{"parked", "discard"},
		{"parked", "discard", "--all"},
	} {
		if err := command(t, config(testserver.Servers{MongoURI: "mongodb://localhost", ServiceBus: "Endpoint=sb://x/;SharedAccessKeyName=a;SharedAccessKey=b"}), io.Discard, args...); !errors.Is(err, app.ErrUsage) {
			t.Errorf("%q: %v, want a usage error", args, err)
		}
	}
	if _, _, known := app.Find("test", slices.Concat([]string{"version"}, []string{"x"})); known {
		t.Error("version takes an argument")
	}
}
