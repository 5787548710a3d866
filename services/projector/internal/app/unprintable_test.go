package app_test

import (
	"io"
	"math"
	"strings"
	"testing"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/command"
	"changerelay/services/projector/internal/sandboxtest"
)

// A property that JSON has no value for is printed as text: what a foreign sender
// makes up keeps nobody from looking at messages, or from discarding them.
func TestCommands_PrintWhatJSONHasNoValueFor(t *testing.T) {
	const topic = "unprintable"
	_, database := servers.Mongo(t, nil)
	p := start(t, configured(t, topic, database), parse(t))
	onTopic(t, topic, database, counting)
	bad, err := contract.Encode(event("a", 1, "Doubled", `{"n":"x"}`), contract.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bad.Properties["extra"] = math.Inf(1)
	foreign := contract.Message{ID: "f", SessionID: "f", Body: []byte("hello"), Properties: map[string]any{"extra": math.NaN()}}
	sandboxtest.Send(t, servers, topic, bad)
	sandboxtest.Send(t, servers, topic, foreign)
	until(t, "they are parked and dead-lettered", func() bool { return p.Status().Parked == 1 && p.Status().DeadLettered == 1 })
	if _, err := command.Program("test").Do(t.Context(), []string{"parked", "discard", "a", "--all"}, full{}, io.Discard); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("a discard that cannot be printed: got %v, want that", err)
	}
	if lines := ledger(t); len(lines) != 1 || lines[0]["count"] != 0.0 {
		t.Errorf("the ledger: got %v, want that none was discarded", lines)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"dlq", "discard", "--all", "--dry-run"}, "NaN"},
		{[]string{"dlq", "discard", "--all"}, "NaN"},
		{[]string{"parked", "show", "a"}, "+Inf"},
		{[]string{"parked", "discard", "a", "--all"}, "+Inf"},
	} {
		lines, err := runCommand(t, c.args...)
		if err != nil || len(lines) != 1 {
			t.Errorf("%v: got %v and %v, want the message", c.args, lines, err)
			continue
		}
		if got := lines[0]["message"].(map[string]any)["properties"].(map[string]any)["extra"]; got != c.want {
			t.Errorf("%v: got %v, want %q", c.args, got, c.want)
		}
	}
}

// Ids are whatever the source has, and may begin as flags do.
func TestParked_AnEventWhoseIDBeginsWithADashIsNamedBehindTwo(t *testing.T) {
	_, database := servers.Mongo(t, nil)
	p := start(t, configured(t, "dashes", database), parse(t))
	dashed := event("a", 1, "Doubled", `{"n":"x"}`)
	dashed.ID = "-zAm"
	send(t, "dashes", dashed)
	until(t, "it is parked", func() bool { return p.Status().Parked == 1 })
	onTopic(t, "dashes", database, counting)
	if lines, err := runCommand(t, "parked", "discard", "a", "-zAm"); err == nil || len(lines) != 0 || !strings.Contains(err.Error(), "behind --, as in discard -- AGGREGATE EVENT") {
		t.Errorf("discard: got %v and %v, want it to say how", lines, err)
	}
	if lines, err := runCommand(t, "parked", "discard", "--", "a", "-zAm"); err != nil || len(lines) != 1 {
		t.Errorf("discard behind --: got %v and %v, want it gone", lines, err)
	}
}
