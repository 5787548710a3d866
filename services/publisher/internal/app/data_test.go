package app_test

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// TestEvents_AWrongPathOfThePayloadHaltsAndEmptiesNothing has FIELD_DATA name what
// no event has. Once it is mended, what was parked is sent whole.
func TestEvents_AWrongPathOfThePayloadHaltsAndEmptiesNothing(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	p := run(t, configured(servers, func(c *config.Config) { c.FieldData, c.ParkLimit = "payload", 3 }))
	p.await(t, "the publisher to lead", leading)
	source.write(t, 10, 5)
	shown := p.await(t, "the publisher to halt", func(s status.Status) bool { return s.State == "halted" })
	if shown.Sent != 0 || !strings.Contains(shown.LastError, `"payload" is missing`) {
		t.Errorf("%d are sent, and the last error is %q, want none and the field", shown.Sent, shown.LastError)
	}
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	mended := configured(servers, func(c *config.Config) { c.ParkLimit = 3 })
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

// TestEvents_OfWhichNoneHasTheDefaultPayloadAreWarnedOf has the payload elsewhere than
// FIELD_DATA says by default, with which such events are sent empty.
func TestEvents_OfWhichNoneHasTheDefaultPayloadAreWarnedOf(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	published(t, servers, source, 5)
	const warning = `has no field "data" in the latest 20 events of "events"`
	look := func(c config.Config, want bool) {
		t.Helper()
		found, _ := examined(t, servers, c)
		view, err := say[command.StreamView](t, c, "status")
		if err != nil || strings.Contains(found, warning) != want || strings.Contains(strings.Join(view.Warnings, " "), warning) != want {
			t.Errorf("doctor says %s, and status %q, %v; want the warning: %t", found, view.Warnings, err, want)
		}
	}
	look(configured(servers), false)
	for version := range 30 {
		if _, err := source.InsertOne(t.Context(), bson.D{
			{Key: "aggregateId", Value: "order-1"}, {Key: "version", Value: version}, {Key: "type", Value: "x"}, {Key: "payload", Value: bson.D{{Key: "n", Value: 1}}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	look(configured(servers), true)
	look(configured(servers, func(c *config.Config) { c.FieldData = "payload" }), false)
	status := run(t, configured(servers)).await(t, "them to be sent all the same", sent(30))
	if status.Parked != 0 {
		t.Errorf("%d are parked, want none: an event may have no payload", status.Parked)
	}
}

// TestReplay_SendsNothingThatTheStreamHides has a command whose settings lack what
// keeps fields out of messages.
func TestReplay_SendsNothingThatTheStreamHides(t *testing.T) {
	t.Parallel()
	hiding := func(c *config.Config) {
		c.DropFields, c.MaskFields, c.FieldData = []string{"secret"}, []string{"note"}, "-"
	}
	servers := testserver.Start(t)
	ids, p := park(t, configured(servers, hiding), servers, 1)
	mended := func(c *config.Config) { hiding(c); c.FieldType = "kind" }
	for setting, change := range map[string]func(*config.Config){
		"DROP_FIELDS": func(c *config.Config) { c.DropFields = nil },
		"MASK_FIELDS": func(c *config.Config) { c.MaskFields = nil },
	} {
		_, err := lines(t, configured(servers, mended, change), "parked", "replay", ids[0])
		if err == nil || !strings.Contains(err.Error(), setting+" was") {
			t.Errorf("replay without %s = %v, want it refused by its name", setting, err)
		}
	}
	if _, err := lines(t, configured(servers, mended), "parked", "replay", ids[0]); err != nil {
		t.Errorf("replay with what the stream hides = %v", err)
	}
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
}
