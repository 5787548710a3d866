package app_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/cli"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/testserver"
)

// printed are the lines of publisher events: the versions of each aggregate in their
// order, how many documents are no events, and the last line.
type printed struct {
	versions   map[string][]int
	unmappable int
	last       string
	ids        map[string]string // message ids, by aggregate and version
}

func printEvents(t *testing.T, c config.Config, args ...string) printed {
	t.Helper()
	var stdout bytes.Buffer
	if err := runCommand(t, c, &stdout, append([]string{"events"}, args...)...); err != nil {
		t.Fatalf("events %q: %v", args, err)
	}
	p := printed{versions: map[string][]int{}, ids: map[string]string{}}
	var before string
	for line := range strings.Lines(stdout.String()) {
		p.last = line
		var read struct {
			Unmappable *struct{ Reason string }
			Message    *struct {
				ID         string `json:"message_id"`
				SessionID  string `json:"session_id"`
				Properties struct {
					Version int `json:"cloudEvents_aggregateversion"`
				}
			}
		}
		if err := json.Unmarshal([]byte(line), &read); err != nil {
			t.Fatalf("events prints %q: %v", line, err)
		}
		if read.Unmappable != nil {
			p.unmappable++
		}
		if m := read.Message; m != nil {
			if m.SessionID != before && p.versions[m.SessionID] != nil {
				t.Errorf("the events of %s are in two places", m.SessionID)
			}
			before = m.SessionID
			p.versions[m.SessionID] = append(p.versions[m.SessionID], m.Properties.Version)
			p.ids[fmt.Sprint(m.SessionID, "/", m.Properties.Version)] = m.ID
		}
	}
	return p
}

// Events are printed as they are sent, with the same ids, those of each aggregate
// together and in order, and nothing is sent.
func TestEvents_ArePrintedAsTheyAreSent(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers)
	p := run(t, c)
	p.await(t, "the publisher to lead", leading)
	source := events(t, servers)
	source.write(t, 60, 7)
	p.await(t, "the events to be sent", sent(60))
	all := printEvents(t, c, "--all", "--rate", "0")
	source.wantAll(t, received{versions: all.versions})
	if want := `{"end":{"messages":60,"unmappable":0}}` + "\n"; all.last != want {
		t.Errorf("the last line: got %s, want %s", all.last, want)
	}
	one := printEvents(t, c, "--aggregate", "order-003", "--aggregate", "nobody")
	if len(one.versions) != 1 || !slices.Equal(one.versions["order-003"], source.written["order-003"]) {
		t.Errorf("of one aggregate: got %v, want all of it and of no other", one.versions)
	}
	drawn := printEvents(t, c, "--sample", "3")
	if len(drawn.versions) == 0 || len(drawn.versions) > 3 {
		t.Errorf("a sample of 3 has %d aggregates", len(drawn.versions))
	}
	for id, versions := range drawn.versions {
		if !slices.Equal(versions, source.written[id]) {
			t.Errorf("of %s, which was drawn: got %v, want all of it", id, versions)
		}
	}
	if _, err := source.InsertOne(t.Context(), bson.D{{Key: "aggregateId", Value: "order-zzz"}, {Key: "version", Value: "first"}, {Key: "type", Value: "Odd"}}); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(t.TempDir(), "events")
	if err := os.WriteFile(kept, []byte("of before"), 0o644); err != nil { //nolint:gosec // others may read it until then
		t.Fatal(err)
	}
	if err := runCommand(t, c, &bytes.Buffer{}, "events", "--aggregate", "order-003", "--out", kept); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(kept); err != nil || bytes.Count(text, []byte("\n")) != len(source.written["order-003"])+1 {
		t.Errorf("the file has %s, %v, want a line for each event and one for the end", text, err)
	}
	if info, err := os.Stat(kept); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has the mode %v, %v, want that no other user may read it", info.Mode(), err)
	}
	if odd := printEvents(t, c, "--all"); odd.unmappable != 1 || len(odd.ids) != 60 {
		t.Errorf("beside a document that is no event: got %d unmappable and %d events, want 1 and 60", odd.unmappable, len(odd.ids))
	}
	for _, event := range source.drainMessages(t, servers) {
		if id, known := all.ids[fmt.Sprint(event.AggregateID, "/", event.Version.Number)]; known && id != event.ID {
			t.Errorf("%s of %s is printed as %s", event.ID, event.AggregateID, id)
		}
		if event.Resend.ID != "" {
			t.Errorf("%s was sent again", event.ID)
		}
	}
	for _, args := range [][]string{{}, {"--all", "--sample", "1"}, {"--sample", "-1"}, {"--all", "--rate", "-1"}, {"--aggregate", ""}} {
		if err := runCommand(t, c, &bytes.Buffer{}, append([]string{"events"}, args...)...); !errors.Is(err, cli.ErrUsage) {
			t.Errorf("events %q: got %v, want it to be wrong usage", args, err)
		}
	}
	elsewhere := c
	elsewhere.SourceCollection = "evnets"
	if err := runCommand(t, elsewhere, &bytes.Buffer{}, "events", "--all"); err == nil || !strings.Contains(err.Error(), "SOURCE_COLLECTION") {
		t.Errorf("of a collection that is not there: got %v, want the setting named", err)
	}
	unnumbered := c
	unnumbered.FieldVersion = "-"
	if err := runCommand(t, unnumbered, &bytes.Buffer{}, "events", "--all"); err == nil {
		t.Error("of a source that numbers no events: got no error")
	}
}
