package suite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"changerelay/services/e2e/internal/harness/cluster"
)

func TestWorld_AWorldIsANameOrAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ours.json")
	if err := os.WriteFile(file, []byte(`{"mongodb":{"majority":"9ms"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{"": "", "wan": `{"base":"wan"}`, file: `{"mongodb":{"majority":"9ms"}}`} {
		if got, err := worldOf(given); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", given, got, err, want)
		}
	}
	if _, err := worldOf("./none.json"); err == nil || !strings.Contains(err.Error(), "none.json") {
		t.Errorf("a file that is not there: got %v, want an error that names it", err)
	}
}

func TestWorld_ServersThatAreGivenKeepTheirWorld(t *testing.T) {
	t.Parallel()
	getenv := func(name string) string {
		return map[string]string{envMongo: "mongodb://a:1", envServiceBus: "Endpoint=sb://a;SharedAccessKeyName=n;SharedAccessKey=k"}[name]
	}
	for _, args := range [][]string{{"--world", "wan"}, {"links"}} {
		if _, err := Parse(args, getenv, os.Stderr); err == nil || !strings.Contains(err.Error(), "as they are") {
			t.Errorf("%q: got %v, want a refusal", args, err)
		}
	}
	c := Config{Given: &cluster.Endpoints{}}
	for _, e := range experiments(full()) {
		if got := c.leavesOut(e); got != e.world {
			t.Errorf("%s on servers that are given: left out is %v, want %v", e.name, got, e.world)
		}
	}
}

// A publisher is at the limit from when nearly as much goes over a while as it
// lets through, and not while it is far below.
func TestAtLimit_IsWhenItIsReached(t *testing.T) {
	t.Parallel()
	sending := func(rates ...int64) (seen []progressed) {
		now, sent := time.Now(), int64(0)
		for _, rate := range rates { // each for a second
			for range 10 {
				seen = append(seen, progressed{at: now, sent: sent})
				now, sent = now.Add(time.Second/10), sent+rate/10
			}
		}
		return seen
	}
	if after := atLimit(sending(100, 100, 500, 500, 500, 500)); after.Round(time.Second) != 2*time.Second {
		t.Errorf("got %v, want 2s", after)
	}
	if after := atLimit(sending(400, 400, 400, 400, 400)); after.Round(time.Second) != 5*time.Second {
		t.Errorf("at four fifths of the limit: got %v, want all of 5s", after)
	}
}
