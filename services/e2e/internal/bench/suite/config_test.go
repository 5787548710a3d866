package suite

import (
	"errors"
	"flag"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func nothing(string) string { return "" }

func TestConfig_Parse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		args []string
		env  map[string]string
		says []string // none: no error
	}{
		{name: "the defaults are fine"},
		{name: "every experiment can be named", args: []string{"path", "latency", "failover", "publisher", "projector", "sessions", "crowd", "partitions", "projectors", "sizes", "aggregates"}},
		{name: "every problem is told", args: []string{"--repeats", "-1", "--events", "-2", "--failovers", "-3", "--lease", "1s", "--timeout", "0s", "x"}, says: []string{"--repeats is -1", "--events is -2", "--failovers is -3", "--lease is 1s", "--timeout is 0s", `no experiment "x"`, "they are path, latency"}},
		{name: "large alone", args: []string{"--large", "resume", "copies", "repair"}},
		{name: "either quick or large", args: []string{"--quick", "--large"}, says: []string{"--quick and --large"}},
		{name: "an unknown flag", args: []string{"--fast"}, says: []string{"fast"}},
		{name: "servers of one's own are two", env: map[string]string{envMongo: "mongodb://localhost"}, says: []string{envMongo, envServiceBus}},
		{name: "servers of one's own", env: map[string]string{envMongo: "mongodb://localhost", envServiceBus: "Endpoint=sb://localhost"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse(tt.args, func(name string) string { return tt.env[name] }, io.Discard)
			if (err == nil) != (len(tt.says) == 0) {
				t.Fatalf("error: got %v, want one that says %q", err, tt.says)
			}
			for _, want := range tt.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error: got %q, want it to say %q", err, want)
				}
			}
		})
	}
}

func TestConfig_FlagsAndNamesComeInAnyOrder(t *testing.T) {
	t.Parallel()
	c, err := Parse([]string{"path", "--quick", "failover", "--failovers", "7", "--lease", "4s", "--events", "100"}, nothing, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"path", "failover"}; !slices.Equal(c.Only, want) {
		t.Errorf("experiments: got %q, want %q", c.Only, want)
	}
	if s := c.Scale; !c.Quick || s.Failovers != 7 || s.Lease != 4*time.Second || s.Events != 100 || s.Aggregates != 50 || s.Repeats != quick().Repeats {
		t.Errorf("scale: got %+v", s)
	}
}

// atADistance is what a row or an experiment says of an added round trip.
var atADistance = regexp.MustCompile(`\+\S+ round trip|each round trip takes longer`)

func TestConfig_ServersOfOnesOwnAreWhereTheyAre(t *testing.T) {
	t.Parallel()
	env := map[string]string{envMongo: "mongodb://localhost", envServiceBus: "Endpoint=sb://localhost"}
	c, err := Parse(nil, func(name string) string { return env[name] }, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range experiments(c.Scale) {
		for _, r := range e.rounds {
			if atADistance.MatchString(r.name + e.shows) {
				t.Errorf("%s: got %q and %q, want nothing at a distance", e.name, r.name, e.shows)
			}
		}
	}
}

func TestConfig_HelpListsTheExperiments(t *testing.T) {
	t.Parallel()
	var usage strings.Builder
	if _, err := Parse([]string{"-h"}, nothing, &usage); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("error: got %v, want %v", err, flag.ErrHelp)
	}
	for _, e := range experiments(full()) {
		if !strings.Contains(usage.String(), e.name) || !strings.Contains(usage.String(), e.title) {
			t.Errorf("usage: got %q, want it to list %q", usage.String(), e.name)
		}
	}
}
