package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/command"
	"changerelay/services/projector/internal/sandboxtest"
)

// runCommand runs a command and returns its lines, but for the sum of a redrive of all.
func runCommand(t *testing.T, args ...string) (lines []map[string]any, err error) {
	t.Helper()
	lines, err = runWhole(t, args...)
	return slices.DeleteFunc(lines, func(line map[string]any) bool { return line["still_halted"] != nil }), err
}

// runWhole runs a command and returns all of its lines.
func runWhole(t *testing.T, args ...string) (lines []map[string]any, err error) {
	t.Helper()
	return runIn(t.Context(), t, args...)
}

func runIn(ctx context.Context, t *testing.T, args ...string) (lines []map[string]any, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	_, err = command.Program("test").Do(ctx, args, &stdout, &stderr)
	if stderr.Len() > 0 {
		err = fmt.Errorf("%w: %s", err, &stderr)
	}
	for line := range strings.Lines(stdout.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%v prints %q: %v", args, line, err)
		}
		lines = append(lines, fields)
	}
	return lines, err
}

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// An event that fails halts its aggregate; the projection is mended, and the
// parked messages are applied beside the running projector, which then goes on.
func TestCommands_OperatorsWorkOnWhatIsParkedAndDead(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	p := start(t, configured(t, "commands", database), parse(t))
	onTopic(t, "commands", database, counting)
	broken := os.Getenv("PROJECTIONS")
	send(t, "commands", event("a", 1, "Happened", `{}`), event("a", 2, "Doubled", `{"n":"x"}`), event("a", 3, "Happened", `{}`), event("b", 1, "Doubled", `{"n":"x"}`))
	for _, id := range []string{"stays", "foreign", "goes too"} {
		sandboxtest.Send(t, servers, "commands", contract.Message{ID: id, SessionID: "f", Body: []byte("hello")})
	}
	until(t, "messages are parked and dead", func() bool { return p.Status().Parked == 3 && p.Status().DeadLettered == 3 })

	if lines, err := runCommand(t, "parked", "list"); err != nil || len(lines) != 3 || lines[0]["event_id"] != "a-2" || lines[0]["failed"] != true {
		t.Errorf("parked list: got %v and %v", lines, err)
	}
	lines, err := runCommand(t, "parked", "show", "a")
	if err != nil || len(lines) != 2 || fmt.Sprint(lines[0]["message"].(map[string]any)["body"]) != "map[n:x]" {
		t.Errorf("parked show: got %v and %v", lines, err)
	}
	printed, err := json.Marshal(lines[1])
	if err != nil {
		t.Fatal(err)
	}
	if lines, err := runCommand(t, "try", broken, "--event", file(t, "shown.json", string(printed))); err != nil || len(lines) != 1 || fmt.Sprint(lines[0]["filter"]) != "map[_id:a _relay.sequence:map[$lt:0000000000000000003] _relay.source:map[$in:[<nil> /shop/events]]]" {
		t.Errorf("try of what parked show prints: got %v and %v", lines, err)
	}
	if lines, err := runCommand(t, "parked", "redrive", "--all"); err == nil || len(lines) != 2 || lines[0]["failed_event_id"] != "a-2" || lines[0]["lifted"] != false {
		t.Errorf("a redrive that fails again: got %v and %v", lines, err)
	}

	t.Setenv("PROJECTIONS", file(t, "mended.yaml", strings.ReplaceAll(counting, "data.n * 2", "100")))
	if lines, err := runCommand(t, "parked", "redrive", "a"); err == nil || len(lines) != 0 || !strings.Contains(err.Error(), `projection "orders" says something else here`) {
		t.Errorf("a redrive with projections that are not rolled out: got %v and %v, want it refused", lines, err)
	}
	if lines, err := runCommand(t, "parked", "redrive", "a", "--other-projections", "--dry-run"); err != nil || len(lines) != 1 || lines[0]["would_apply"] != 2.0 {
		t.Errorf("a dry run: got %v and %v, want two that would be applied", lines, err)
	}
	if lines, err := runCommand(t, "parked", "redrive", "a", "--other-projections"); err != nil || len(lines) != 1 || lines[0]["applied"] != 2.0 || lines[0]["lifted"] != true {
		t.Errorf("parked redrive: got %v and %v", lines, err)
	}
	t.Setenv("PROJECTIONS", broken)
	for _, dryRun := range []string{"--dry-run", "--json"} {
		lines, err := runCommand(t, "parked", "discard", "b", "b-1", dryRun)
		if err != nil || len(lines) != 1 || lines[0]["event_id"] != "b-1" || fmt.Sprint(lines[0]["message"].(map[string]any)["body"]) != "map[n:x]" {
			t.Errorf("parked discard %s: got %v and %v, want the message whole", dryRun, lines, err)
		}
	}
	if _, err := runCommand(t, "parked", "discard", "b", "--all"); err == nil {
		t.Error("a discard of nothing: got no error")
	}
	if lines, err := runCommand(t, "parked", "redrive", "tpyo"); err == nil || len(lines) != 0 || !strings.Contains(err.Error(), `"tpyo" is not halted`) {
		t.Errorf("a redrive of nobody: got %v and %v, want not found", lines, err)
	}
	if lines, err := runCommand(t, "parked", "redrive", "--all"); err != nil || len(lines) != 1 || lines[0]["lifted"] != true {
		t.Errorf("a redrive of what is empty: got %v and %v", lines, err)
	}
	send(t, "commands", event("a", 4, "Happened", `{}`), event("b", 2, "Happened", `{}`))
	until(t, "the projector goes on", func() bool {
		documents := sandboxtest.Documents(t, db, "orders")
		return slices.Equal(seen(documents["a"]), []int64{1, 3, 4}) && slices.Equal(seen(documents["b"]), []int64{2}) &&
			documents["a"].Lookup("events").AsInt64() == 103
	})

	lines, err = runCommand(t, "dlq", "list")
	if err != nil || len(lines) != 3 || lines[1]["message_id"] != "foreign" || lines[1]["reason"] != "ForeignMessage" {
		t.Fatalf("dlq list: got %v and %v", lines, err)
	}
	number := fmt.Sprintf("%.0f", lines[1]["sequence_number"])
	if lines, err := runCommand(t, "dlq", "show", number); err != nil || len(lines) != 1 || lines[0]["message"].(map[string]any)["body"] != "hello" {
		t.Errorf("dlq show: got %v and %v", lines, err)
	}
	if _, err := runCommand(t, "dlq", "discard", "99"); err == nil {
		t.Error("a discard of what is not there: got no error")
	}
	if lines, err := runCommand(t, "dlq", "discard", number, "--dry-run"); err != nil || len(lines) != 1 || lines[0]["dry_run"] != true {
		t.Errorf("dlq discard, dry: got %v and %v", lines, err)
	}
	if lines, err := runCommand(t, "dlq", "discard", number); err != nil || len(lines) != 1 || lines[0]["message_id"] != "foreign" {
		t.Errorf("dlq discard: got %v and %v", lines, err)
	}
	if lines, err := runCommand(t, "dlq", "list"); err != nil || len(lines) != 2 || lines[0]["message_id"] != "stays" {
		t.Errorf("dlq list afterwards: got %v and %v", lines, err)
	}
	if lines, err := runCommand(t, "dlq", "discard", "--all"); err != nil || len(lines) != 2 {
		t.Errorf("dlq discard --all: got %v and %v", lines, err)
	}
}

func TestCommands_AProjectionIsTriedWithoutAnyServer(t *testing.T) {
	t.Parallel()
	projections := file(t, "p.yaml", counting)
	if lines, err := runCommand(t, "validate", projections); err != nil || len(lines) != 1 || fmt.Sprint(lines[0]) != "map[collections:[orders] name:orders types:[Doubled Happened]]" {
		t.Errorf("validate: got %v and %v", lines, err)
	}
	broken := file(t, "broken.yaml", strings.ReplaceAll(counting, "event.version", "event.nowhere"))
	if _, err := runCommand(t, "validate", broken); err == nil || !strings.Contains(err.Error(), broken+`:8: projection "orders": event type "Happened"`) {
		t.Errorf("validate a broken one: got %v, want file, line, projection and event type", err)
	}
	lines, err := runCommand(t, "try", projections, "--event", file(t, "event.json", `{"type":"Doubled","aggregateId":"o-1","version":7,"data":{"n":4}}`))
	if err != nil || len(lines) != 1 {
		t.Fatalf("try: got %v and %v", lines, err)
	}
	if got := fmt.Sprint(lines[0]["filter"]); got != "map[_id:o-1 _relay.sequence:map[$lt:0000000000000000007] _relay.source:map[$in:[<nil> /try/events]]]" {
		t.Errorf("filter: got %s", got)
	}
	if got := fmt.Sprint(lines[0]["update"].(map[string]any)["$inc"]); got != "map[events:8]" {
		t.Errorf("update: got %s", got)
	}
	keyed := file(t, "keyed.yaml", strings.ReplaceAll(counting, "collection: orders", "collection: orders\n  key: '\"all\"'"))
	lines, err = runCommand(t, "try", keyed, "--event", file(t, "event.json", `{"type":"Doubled","aggregateId":"o-1","version":7,"data":{"n":4}}`))
	if err != nil || len(lines) != 1 || fmt.Sprint(lines[0]["filter"]) != "map[$nor:[map[_relay.aggregateId:o-1 _relay.sequence:map[$gte:0000000000000000007]]] _id:all _relay.sequence:map[$exists:true]]" ||
		fmt.Sprint(lines[0]["guard"]) != "map[collection:applied_positions filter:map[_id:map[aggregateId:o-1 projection:orders] sequence:map[$lt:0000000000000000007] source:map[$in:[<nil> /try/events]]]]" {
		t.Errorf("try with a key: got %v and %v, want the guard in the ledger", lines, err)
	}
	if _, err := runCommand(t, "try", projections, "--event", file(t, "event.json", `{"type":"Dobuled"}`)); err == nil || !strings.Contains(err.Error(), `follows events of type "Dobuled"`) {
		t.Errorf("try of what nobody follows: got %v, want it said", err)
	}
	for name, content := range map[string]string{
		"no event": ``, "no type": `{}`, "no JSON": `{`, "an event that fails": `{"type":"Doubled","data":{"n":"x"}}`, "an unknown operation": `{"type":"Doubled","operation":"melt"}`,
	} {
		if _, err := runCommand(t, "try", projections, "--event", file(t, "bad.json", content)); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

// onTopic has commands work on a topic and a read database.
func onTopic(t *testing.T, topic, database, projections string) {
	t.Helper()
	for name, value := range map[string]string{
		"SERVICEBUS_CONNECTION_STRING": servers.ServiceBus, "SERVICEBUS_TOPIC": topic, "SERVICEBUS_SUBSCRIPTION": "projector",
		"READMODEL_MONGODB_URI": servers.MongoURI, "READMODEL_DATABASE": database, "PROJECTIONS": file(t, "projections.yaml", projections),
	} {
		t.Setenv(name, value)
	}
}
