package demo

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func nothing(string) string { return "" }

func TestConfig_TheDefaults(t *testing.T) {
	t.Parallel()
	c, err := Parse(nil, nothing, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if c.Rate != 2000 || c.Duration != 30*time.Second || c.Aggregates != 5000 || c.Publishers != 2 || c.Projectors != 3 || !c.Faults || c.Seed != 1 {
		t.Errorf("defaults: got %+v", c)
	}
	if got, want := c.planned(), 60_000; got != want {
		t.Errorf("planned events: got %d, want %d", got, want)
	}
}

func TestConfig_BadUsageIsToldAtOnce(t *testing.T) {
	t.Parallel()
	bad := filepath.Join(t.TempDir(), "bad.ndjson")
	if err := os.WriteFile(bad, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		args []string
		env  map[string]string
		says []string
	}{
		{name: "an unknown flag", args: []string{"--fast"}, says: []string{"fast"}},
		{name: "a value of another type", args: []string{"--rate", "many"}, says: []string{"many"}},
		{name: "an argument too many", args: []string{"now"}, says: []string{`there is no argument "now"`}},
		{
			name: "several values out of range", args: []string{"--rate", "0", "--aggregates", "0", "--projectors", "0", "--duration", "0s", "--lease", "1s", "--timeout", "0s"},
			says: []string{"--rate is 0", "--aggregates is 0", "--projectors is 0", "--duration is 0s", "--lease is 1s", "--timeout is 0s"},
		},
		{name: "faults with nobody to take over", args: []string{"--publishers", "1"}, says: []string{"nobody could take over"}},
		{name: "an input file that is not there", args: []string{"--input", "missing.ndjson"}, says: []string{"missing.ndjson"}},
		{name: "an input file with a bad line", args: []string{"--input", bad, "--rate", "0"}, says: []string{bad + ":1: aggregateId is missing", "--rate is 0"}},
		{
			name: "a world for servers that are there", args: []string{"--world", "wan"}, env: map[string]string{envMongo: "mongodb://x", envServiceBus: "Endpoint=sb://y"},
			says: []string{`--world is "wan"`},
		},
		{name: "fields of no file", args: []string{"--fields", "type=x"}, says: []string{"there is none"}},
		{name: "fields of no meaning", args: []string{"--input", bad, "--fields", "id=x"}, says: []string{`--fields: "id=x"`}},
		{name: "projections without input", args: []string{"--projections", "missing.yaml"}, says: []string{"there is none", "missing.yaml"}},
		{name: "half a backend", env: map[string]string{envMongo: "mongodb://x"}, says: []string{envServiceBus}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse(tt.args, func(name string) string { return tt.env[name] }, io.Discard)
			if err == nil {
				t.Fatal("error: got none")
			}
			for _, want := range tt.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error: got %q, want it to say %q", err, want)
				}
			}
		})
	}
}

func TestConfig_OnePublisherIsEnoughWithoutFaults(t *testing.T) {
	t.Parallel()
	if _, err := Parse([]string{"--publishers", "1", "--no-faults"}, nothing, io.Discard); err != nil {
		t.Errorf("error: got %v, want none", err)
	}
}

func TestConfig_HelpListsTheFlags(t *testing.T) {
	t.Parallel()
	var usage strings.Builder
	if _, err := Parse([]string{"--help"}, nothing, &usage); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("error: got %v, want %v", err, flag.ErrHelp)
	}
	for _, want := range []string{"-rate", "-duration", "-aggregates", "-publishers", "-projectors", "-seed", "-no-faults", "-json", "-input", "-lease"} {
		if !strings.Contains(usage.String(), want) {
			t.Errorf("help: got %q, want %s in it", usage.String(), want)
		}
	}
}

func TestConfig_ServersCanBeGiven(t *testing.T) {
	t.Parallel()
	env := map[string]string{envMongo: "mongodb://x", envServiceBus: "Endpoint=sb://y"}
	c, err := Parse(nil, func(name string) string { return env[name] }, io.Discard)
	if err != nil || c.Backend == nil || c.Backend.MongoURI != "mongodb://x" || c.Backend.ServiceBus != "Endpoint=sb://y" {
		t.Errorf("backend: got %+v, %v", c.Backend, err)
	}
}

func TestConfig_AFileTooShortForFaultsSaysSo(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "events.ndjson")
	line := `{"aggregateId":"a","type":"T","version":1,"time":"2026-03-01T12:00:00Z","data":{}}`
	if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Parse([]string{"--input", file}, nothing, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	d := New(c, io.Discard)
	if d.faults() || !strings.Contains(d.tooShort(), "1 events are written in 0.0 s") {
		t.Errorf("faults: got %v %q, want none and why", d.faults(), d.tooShort())
	}
	if got := d.setup(); len(got) == 0 || !strings.Contains(got[len(got)-1].Text, "none") {
		t.Errorf("setup: got %v, want it to say that there are no faults", got)
	}
}
