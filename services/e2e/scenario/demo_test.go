package scenario

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"changerelay/services/e2e/internal/cluster"
	"changerelay/services/e2e/internal/demo"
	"changerelay/services/e2e/internal/report"
	"changerelay/services/e2e/internal/witness"
)

// play runs a demo with the given arguments over the binaries of a directory.
func play(t *testing.T, bin string, args ...string) *report.Report {
	t.Helper()
	cfg, err := demo.Parse(append(args, "--bin", bin, "--dir", t.TempDir()), func(string) string { return "" }, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	r, err := demo.New(cfg, io.Discard).Run(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func failed(r *report.Report) []string {
	var names []string
	for _, c := range r.Checks {
		if !c.Passed {
			names = append(names, fmt.Sprintf("%s: got %v, at most %v %v", c.Name, c.Got, c.Bound, c.Samples))
		}
	}
	return names
}

func check(t *testing.T, r *report.Report, name string) report.Check {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("check %q: got none", name)
	return report.Check{}
}

func TestTheDemoDoesItsHarmAndFindsNothingLost(t *testing.T) {
	t.Parallel()
	r := play(t, filepath.Dir(binaries.Publisher), "--rate", "400", "--duration", "8s", "--aggregates", "300", "--lease", "3s", "--projectors", "2", "--seed", "5")
	if got, want := len(r.Faults), 3; got != want {
		t.Errorf("faults: got %d, want %d", got, want)
	}
	// How long a failover takes is for a machine that has nothing else to do.
	for _, name := range failed(r) {
		if !strings.HasPrefix(name, "failover") {
			t.Error(name)
		}
	}
	for _, n := range r.Nodes {
		if n.ResidentBytes <= 0 || n.CPUSeconds <= 0 {
			t.Errorf("%s: got %d bytes and %v s, want some of both", n.Name, n.ResidentBytes, n.CPUSeconds)
		}
	}
}

func TestTheDemoTakesEventsOfAFile(t *testing.T) {
	t.Parallel()
	var lines strings.Builder
	for version := range 5 {
		for aggregate := range 40 {
			fmt.Fprintf(&lines, `{"aggregateId":"a-%d","type":"Moved","version":%d,"time":"2026-03-01T12:00:00Z","data":{"to":{"x":%d,"y":0.5},"tags":["p",null]}}`+"\n", aggregate, version*3, version)
		}
	}
	file := filepath.Join(t.TempDir(), "events.ndjson")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	r := play(t, filepath.Dir(binaries.Publisher), "--input", file)
	if !r.Passed {
		t.Errorf("checks that failed: %q", failed(r))
	}
	if got, want := r.Figures[0].Value, 200.0; got != want {
		t.Errorf("events: got %v, want %v", got, want)
	}
}

// A demo that cannot fail shows nothing: here the projectors keep another read
// model than the one that is judged.
func TestTheDemoFailsWhenTheReadModelIsWrong(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	declaration := filepath.Join(bin, "wrong.yaml")
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	right, err := os.ReadFile(filepath.Join(root, "services", "e2e", "orders.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	wrong := strings.Replace(string(right), "rounds: 1, events: 1", "rounds: 1, events: 2", 1)
	script := "#!/bin/sh\nPROJECTIONS=" + declaration + " exec " + binaries.Projector + " \"$@\"\n"
	for path, text := range map[string]string{declaration: wrong, filepath.Join(bin, "projector"): script} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, binary := range []string{binaries.Sandbox, binaries.Publisher} {
		if err := os.Symlink(binary, filepath.Join(bin, filepath.Base(binary))); err != nil {
			t.Fatal(err)
		}
	}
	r := play(t, bin, "--rate", "300", "--duration", "1s", "--aggregates", "20", "--no-faults")
	if r.Passed {
		t.Error("verdict: got a pass over a wrong read model")
	}
	for _, name := range []string{witness.WrongDocuments, witness.AppliedTwice} {
		if c := check(t, r, name); c.Passed || c.Got == 0 {
			t.Errorf("%s: got %v, want it to fail", name, c.Got)
		}
	}
	if c := check(t, r, witness.LostBeforeTopic); !c.Passed {
		t.Errorf("%s: got %v, want it to pass, for that much is right", c.Name, c.Got)
	}
}
