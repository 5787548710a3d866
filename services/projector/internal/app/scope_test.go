package app_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/cli"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/sandboxtest"
)

func load(t *testing.T, path string) projection.Projections {
	t.Helper()
	projections, err := projection.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return projections
}

// Every command that changes something is refused in an environment that is not
// that of the projectors, and what is parked and halted stays.
func TestScope_RefusesWhatIsNotTheProjectorsEnvironment(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	path := file(t, "orders.yaml", counting)
	p := start(t, configured(t, "scope", database), load(t, path))
	sandboxtest.Send(t, servers, "scope", contract.Message{ID: "foreign", SessionID: "f", Body: []byte("hello")})
	until(t, "one is dead-lettered", func() bool { return p.Status().DeadLettered == 1 })
	send(t, "scope", event("a", 1, "Doubled", `{"n":"x"}`), event("a", 2, "Happened", `{}`))
	until(t, "the messages are parked", func() bool { return p.Status().Parked == 2 })
	right := map[string]string{
		"SERVICEBUS_CONNECTION_STRING": servers.ServiceBus, "SERVICEBUS_TOPIC": "scope", "SERVICEBUS_SUBSCRIPTION": "projector",
		"READMODEL_MONGODB_URI": servers.MongoURI, "READMODEL_DATABASE": database, "READMODEL_GROUP": "", "PROJECTIONS": path,
	}
	commands := [][]string{
		{"parked", "redrive", "a"},
		{"parked", "redrive", "--all"},
		{"parked", "discard", "a", "--all"},
		{"switch", "orders", "--to", "1"},
		{"halts", "resume"},
		{"dlq", "redrive", "--all"},
		{"dlq", "discard", "--all"},
		{"dlq", "discard", "--all", "--dry-run"},
		{"dlq", "discard", "1"},
	}
	for name, wrong := range map[string]struct{ variable, value, want string }{
		"no projections":       {"PROJECTIONS", "", `projection "latest" is only here`},
		"other projections":    {"PROJECTIONS", file(t, "other.yaml", strings.ReplaceAll(counting, "name: orders", "name: others")), `projection "orders" is only there`},
		"changed projections":  {"PROJECTIONS", file(t, "changed.yaml", strings.ReplaceAll(counting, "data.n * 2", "100")), `projection "orders" says something else here`},
		"another version":      {"PROJECTIONS", file(t, "version.yaml", strings.ReplaceAll(counting, "name: orders", "name: orders\n  version: 2")), `projection "orders_v2" is only here`},
		"another subscription": {"SERVICEBUS_SUBSCRIPTION", "another", `there are topic "scope" with subscription "projector"`},
		"another topic":        {"SERVICEBUS_TOPIC", "another", `no projector of topic "another"`},
		"another group":        {"READMODEL_GROUP", "another", "none has there at all"},
		"another database":     {"READMODEL_DATABASE", database + "2", "none has there at all"},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range right {
				t.Setenv(variable, value)
			}
			t.Setenv(wrong.variable, wrong.value)
			for _, args := range commands {
				lines, err := runCommand(t, args...)
				if err == nil || errors.Is(err, cli.ErrUsage) || len(lines) != 0 || !strings.Contains(err.Error(), wrong.want) {
					t.Errorf("%v: got %v and %v, want it refused: %s", args, lines, err, wrong.want)
				}
			}
		})
	}
	db := client.Database(database)
	if got := len(sandboxtest.Documents(t, db, "halted_aggregates")); got != 1 {
		t.Errorf("%d aggregates are halted, want 1", got)
	}
	n, err := db.Collection("parked_messages").CountDocuments(t.Context(), map[string]any{})
	if err != nil || n != 2 {
		t.Errorf("%d messages are parked (%v), want 2", n, err)
	}
	for variable, value := range right {
		t.Setenv(variable, value)
	}
	if lines, err := runCommand(t, "dlq", "list"); err != nil || len(lines) != 1 || lines[0]["message_id"] != "foreign" {
		t.Errorf("dead letters: got %v and %v, want the one there was", lines, err)
	}
	t.Setenv("PROJECTIONS", file(t, "lacking.yaml", strings.ReplaceAll(counting, "Doubled", "Dobuled")))
	if lines, err := runCommand(t, "dlq", "discard", "--all", "--other-projections"); err != nil || len(lines) != 1 {
		t.Errorf("with other projections that are meant: got %v and %v, want it discarded", lines, err)
	}
}

// Commands that look say that there is nothing to see, where they would look as if
// all were well: in another group, database, topic or subscription.
func TestScope_NothingParkedIsNoNewsWhereNoProjectorIs(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	path := file(t, "v1.yaml", versioned)
	deployed(t, client, readmodel.Config{Database: database, Feed: readmodel.Feed{Topic: "unused", Subscription: "projector"}}, path)
	for _, name := range []string{"orders_v1", "totals_v1"} {
		if err := client.Database(database).CreateCollection(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	right := map[string]string{
		"SERVICEBUS_TOPIC": "unused", "SERVICEBUS_SUBSCRIPTION": "projector", "READMODEL_MONGODB_URI": servers.MongoURI,
		"READMODEL_DATABASE": database, "READMODEL_GROUP": "", "PROJECTIONS": path,
	}
	look := func(t *testing.T, variable, value, want string, args ...string) {
		t.Helper()
		for variable, value := range right {
			t.Setenv(variable, value)
		}
		t.Setenv(variable, value)
		_, err := runCommand(t, args...)
		if (err == nil) != (want == "") || err != nil && (errors.Is(err, cli.ErrUsage) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v with %s=%q: got %v, want %q", args, variable, value, err, want)
		}
	}
	for _, args := range [][]string{{"parked", "list"}, {"parked", "list", "a"}, {"versions"}, {"status", "--json"}} {
		look(t, "READMODEL_GROUP", "", "", args...)
		look(t, "SERVICEBUS_TOPIC", "", "", args...)
		look(t, "READMODEL_GROUP", "another", `no projector of topic "unused" of subscription "projector" in the group "another"`, args...)
		look(t, "READMODEL_DATABASE", database+"2", "none has there at all", args...)
		look(t, "SERVICEBUS_TOPIC", "another", `there are topic "unused" with subscription "projector"`, args...)
		look(t, "SERVICEBUS_SUBSCRIPTION", "another", "nothing is known here", args...)
	}
	look(t, "PROJECTIONS", "", "declares no projection with a version", "versions")
	look(t, "PROJECTIONS", file(t, "other.yaml", strings.ReplaceAll(versioned, "orders", "others")), `has no version of projection "others"`, "versions")
}

// Every command takes --json, wherever it stands.
func TestScope_EveryCommandTakesJSON(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	path := file(t, "v1.yaml", versioned)
	deployed(t, client, readmodel.Config{Database: database, Feed: readmodel.Feed{Topic: "commands", Subscription: "projector"}}, path)
	for name, value := range map[string]string{
		"SERVICEBUS_TOPIC": "commands", "SERVICEBUS_SUBSCRIPTION": "projector", "READMODEL_MONGODB_URI": servers.MongoURI, "SERVICEBUS_CONNECTION_STRING": servers.ServiceBus,
		"READMODEL_DATABASE": database, "PROJECTIONS": path,
	} {
		t.Setenv(name, value)
	}
	sample := file(t, "event.json", `{"type":"Happened","data":{"customer":"c"}}`)
	for _, args := range [][]string{
		{"validate", path},
		{"try", path, "--event", sample},
		{"status"},
		{"parked", "list"},
		{"parked", "list", "a"},
		{"parked", "show", "a"},
		{"parked", "redrive", "--all"},
		{"parked", "discard", "a", "--all"},
		{"halts", "resume"},
		{"dlq", "list"},
		{"dlq", "show", "1"},
		{"dlq", "redrive", "--all"},
		{"dlq", "discard", "1"},
		{"versions"},
		{"switch", "orders", "--to", "1"},
		{"setup"},
		{"doctor"},
		{"health"},
	} {
		for _, with := range [][]string{slices.Concat(args, []string{"--json"}), slices.Insert(slices.Clone(args), 1, "--json")} {
			if _, err := runCommand(t, with...); errors.Is(err, cli.ErrUsage) {
				t.Errorf("%v: %v", with, err)
			}
		}
	}
	if _, err := runCommand(t, "--json"); !errors.Is(err, cli.ErrUsage) {
		t.Errorf("--json alone: got %v, want it refused", err)
	}
}

// Projections that no longer follow an event do not deal with it: it stays
// parked until somebody gives it up.
func TestScope_NotFollowedIsNotDone(t *testing.T) {
	_, database := servers.Mongo(t, nil)
	path := file(t, "orders.yaml", counting)
	p := start(t, configured(t, "unfollowed", database), load(t, path))
	send(t, "unfollowed", event("a", 1, "Doubled", `{"n":"x"}`), event("a", 2, "Unheard", `{}`), event("a", 3, "Happened", `{}`))
	until(t, "the messages are parked", func() bool { return p.Status().Parked == 3 })
	for name, value := range map[string]string{
		"SERVICEBUS_TOPIC": "unfollowed", "SERVICEBUS_SUBSCRIPTION": "projector", "READMODEL_MONGODB_URI": servers.MongoURI, "READMODEL_DATABASE": database,
		"PROJECTIONS": file(t, "fewer.yaml", "projections:\n  - name: orders\n    collection: orders\n    on:\n      Happened: {inc: {events: 1}}\n"),
	} {
		t.Setenv(name, value)
	}
	lines, err := runCommand(t, "parked", "redrive", "a", "--other-projections")
	if err == nil || len(lines) != 1 || lines[0]["failed_event_id"] != "a-1" || lines[0]["lifted"] != false || !strings.Contains(fmt.Sprint(lines[0]["reason"]), `projection "orders" followed the event`) {
		t.Errorf("a redrive of what is not followed any more: got %v and %v, want it left parked", lines, err)
	}
	lines, err = runCommand(t, "parked", "redrive", "a", "--other-projections", "--accept-unfollowed")
	if err != nil || len(lines) != 1 || lines[0]["lifted"] != true || lines[0]["applied"] != 1.0 || lines[0]["passed_by"] != 2.0 {
		t.Errorf("a redrive that accepts it: got %v and %v, want one applied and two passed by", lines, err)
	}
}
