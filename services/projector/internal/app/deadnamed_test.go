package app_test

import (
	"slices"
	"testing"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/sandboxtest"
)

// A property may have a name that no field may have: the message is parked whole,
// by a halt and by a redrive of dead letters, and applied.
func TestDeadRedrive_APropertyMayHaveAnyName(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	cfg := configured(t, "named", database)
	onTopic(t, "named", database, counting)
	named := func(e contract.Event) contract.Message {
		m, err := contract.Encode(e, contract.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"$tenant", "$set", "a.b", "a\x00b", "ü"} {
			m.Properties[name] = "x"
		}
		return m
	}
	sandboxtest.Send(t, servers, "named", named(event("a", 1, "Happened", `{}`)))
	deadLetter(t, "named", "a")
	sandboxtest.Send(t, servers, "named", named(event("b", 1, "Doubled", `{"n":"x"}`)), named(event("b", 2, "Happened", `{}`)))
	p := start(t, cfg, parse(t))
	until(t, "b is halted", func() bool { return p.Status().Parked+p.Status().DeadLettered == 2 })

	lines, err := runCommand(t, "parked", "show", "b")
	if err != nil || len(lines) != 2 {
		t.Fatalf("parked show: got %v and %v, want both", lines, err)
	}
	for _, name := range []string{"$tenant", "$set", "a.b", "a\x00b", "ü"} {
		if got := lines[1]["message"].(map[string]any)["properties"].(map[string]any)[name]; got != "x" {
			t.Errorf("property %q of a parked message: got %v, want it kept", name, got)
		}
	}
	if lines, err := runCommand(t, "dlq", "redrive", "--all"); err != nil || len(lines) == 0 || lines[0]["fate"] != "put back" {
		t.Errorf("dlq redrive: got %v and %v, want it put back", lines, err)
	}
	if got := seen(sandboxtest.Documents(t, db, "orders")["a"]); !slices.Equal(got, []int64{1}) {
		t.Errorf("a: seen %v, want it applied", got)
	}
	if lines, err := runCommand(t, "parked", "discard", "b", "b-1"); err != nil || len(lines) != 1 {
		t.Errorf("parked discard: got %v and %v", lines, err)
	}
	if lines, err := runCommand(t, "parked", "redrive", "b"); err != nil || len(lines) != 1 || lines[0]["applied"] != 1.0 {
		t.Errorf("parked redrive: got %v and %v, want one applied", lines, err)
	}
}
