package app_test

import (
	"strings"
	"testing"

	"changerelay/services/publisher/internal/app"
	"changerelay/services/publisher/internal/testserver"
)

// TestEvents_AWrongPathOfThePayloadHaltsAndEmptiesNothing has FIELD_DATA name what
// no event has. Once it is mended, what was parked is sent whole.
func TestEvents_AWrongPathOfThePayloadHaltsAndEmptiesNothing(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	p := run(t, config(servers, func(c *app.Config) { c.FieldData, c.ParkLimit = "payload", 3 }))
	p.await(t, "the publisher to lead", leading)
	source.write(t, 10, 5)
	status := p.await(t, "the publisher to halt", func(s app.Status) bool { return s.State == "halted" })
	if status.Sent != 0 || !strings.Contains(status.LastError, `"payload" is missing`) {
		t.Errorf("%d are sent, and the last error is %q, want none and the field", status.Sent, status.LastError)
	}
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	mended := config(servers, func(c *app.Config) { c.ParkLimit = 3 })
	if _, err := lines(t, mended, "parked", "replay", "--all"); err != nil {
		t.Fatal(err)
	}
	run(t, mended).await(t, "the rest to be sent", sent(7))
	for _, m := range receive(t, servers, 10) {
		if string(m.Body) == "{}" {
			t.Errorf("message %s is empty", m.MessageID)
		}
	}
}

// TestReplay_SendsNothingThatTheStreamHides has a command whose settings lack what
// keeps fields out of messages.
func TestReplay_SendsNothingThatTheStreamHides(t *testing.T) {
	t.Parallel()
	hiding := func(c *app.Config) {
		c.DropFields, c.MaskFields, c.FieldData = []string{"secret"}, []string{"note"}, "-"
	}
	servers := testserver.Start(t)
	ids, p := park(t, config(servers, hiding), servers, 1)
	mended := func(c *app.Config) { hiding(c); c.FieldType = "kind" }
	for setting, change := range map[string]func(*app.Config){
		"DROP_FIELDS": func(c *app.Config) { c.DropFields = nil },
		"MASK_FIELDS": func(c *app.Config) { c.MaskFields = nil },
	} {
		_, err := lines(t, config(servers, mended, change), "parked", "replay", ids[0])
		if err == nil || !strings.Contains(err.Error(), setting+" was") {
			t.Errorf("replay without %s = %v, want it refused by its name", setting, err)
		}
	}
	if _, err := lines(t, config(servers, mended), "parked", "replay", ids[0]); err != nil {
		t.Errorf("replay with what the stream hides = %v", err)
	}
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
}
