package clock

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// program tells its wall clock at its start, and again when two seconds of
// monotonic time have passed, with how long that took by its own measure.
const program = `package main

import (
	"encoding/json"
	"os"
	"time"
)

func main() {
	first := time.Now()
	time.Sleep(2 * time.Second)
	second := time.Now()
	json.NewEncoder(os.Stdout).Encode(map[string]any{"first": first, "second": second, "took": second.Sub(first)})
}
`

func TestClock_AClockIsWrongAndJumpsWhileTimersAreRight(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	overlay, err := Overlay(t.Context(), filepath.Join(dir, "overlay"))
	if err != nil {
		t.Fatal(err)
	}
	source, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), binary)
	cmd.Env = Wrong{Ahead: time.Hour, Then: -2 * time.Hour, After: time.Second}.Environment()
	began := time.Now()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	ended := time.Now()
	var got struct {
		First, Second time.Time
		Took          time.Duration
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		got   time.Time
		ahead time.Duration
	}{{"at its start", got.First, time.Hour}, {"after the jump", got.Second, -2 * time.Hour}} {
		if right := c.got.Add(-c.ahead); right.Before(began) || right.After(ended) {
			t.Errorf("%s: got %v, want %v ahead of a time from %v to %v", c.name, c.got, c.ahead, began, ended)
		}
	}
	if got.Took < 2*time.Second || got.Took > ended.Sub(began) {
		t.Errorf("by its own measure it took %v, want 2s to %v", got.Took, ended.Sub(began))
	}
}
