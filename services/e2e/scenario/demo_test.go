package scenario

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/campaign/demo"
	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
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

func TestDemo_TheDemoDoesItsHarmAndFindsNothingLost(t *testing.T) {
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

func TestDemo_TheDemoTakesEventsOfAFile(t *testing.T) {
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

// ownRules are a user's projection that follows one type of two, and fails where a field
// is missing.
const ownRules = `projections:
  - name: mine
    collection: mine
    on:
      Moved:
        set: {to: data.to}
        inc: {moves: 1}
`

// What the relay cannot carry or apply is no loss: each event is named by its line,
// with the reason and what can be done.
func TestDemo_TheDemoNamesWhatItSetsAsideOfAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rules, file := filepath.Join(dir, "mine.yaml"), filepath.Join(dir, "events.ndjson")
	event := func(aggregate, kind string, version int, data string) string {
		return fmt.Sprintf(`{"aggregateId":"%s","type":"%s","version":%d,"time":"2026-03-01T12:00:00Z","data":%s}`, aggregate, kind, version, data)
	}
	lines := []string{
		event("good one", "Moved", 1, `{"to":"x"}`),
		event("good one", "Praised", 2, `{"$where":"1","a.b":2,"":3}`),
		event(strings.Repeat("😀", 100), "Moved", 1, `{"to":"x"}`),
		event(`tab\tbed`, "Moved", 1, `{"to":"x"}`),
		event("good one", `Moved\nback`, 3, `{"to":"x"}`),
		event("halted one", "Moved", 1, `{}`),
		event("halted one", "Moved", 2, `{"to":"x"}`),
		event("good one", "Moved", 4, `{"to":"y"}`),
		event("hostile", "Moved", 1, `{"to":{"$where":"1"}}`),
	}
	for path, text := range map[string]string{rules: ownRules, file: strings.Join(lines, "\n")} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := play(t, filepath.Dir(binaries.Publisher), "--input", file, "--projections", rules, "--no-faults")
	want := []struct {
		line                  int
		event, reason, remedy string
	}{
		{3, "(100 characters)", "has 200 characters", "FIELD_AGGREGATE_ID"},
		{4, "version 1 of tab\tbed", "U+0009", "FIELD_AGGREGATE_ID"},
		{5, "version 3 of good one", "U+000A", "FIELD_TYPE"},
		{6, "version 1 of halted one", "mine", "projector parked redrive 'halted one'"},
		{7, "version 2 of halted one", "earlier event", "redriven with it"},
		{9, "version 1 of hostile", "DollarPrefixedFieldName", "projector parked redrive hostile"},
	}
	if len(r.Aside) != len(want) {
		t.Fatalf("set aside: got %+v, want %d events", r.Aside, len(want))
	}
	for i, w := range want {
		a := r.Aside[i]
		if a.File != "events.ndjson" || a.Line != w.line || !strings.Contains(a.Event, w.event) || !strings.Contains(a.Reason, w.reason) || !strings.Contains(a.Remedy, w.remedy) {
			t.Errorf("set aside: got %+v, want %+v", a, w)
		}
	}
	aside := []string{witness.ParkedChanges, witness.ParkedMessages, witness.HaltedAggregates}
	for _, name := range failed(r) {
		if !slices.ContainsFunc(aside, func(one string) bool { return strings.HasPrefix(name, one) }) {
			t.Error(name)
		}
	}
	if c := check(t, r, witness.ParkedChanges); c.Got != 3 || c.Passed {
		t.Errorf("%s: got %v, want 3 and no pass", c.Name, c.Got)
	}
	if c := check(t, r, witness.WrongDocuments); c.Unchecked == "" {
		t.Errorf("%s: got a verdict, want that the rules of others are not computed anew", c.Name)
	}
}

// A witness of the user's own projections that sees nothing would show nothing.
func TestDemo_TheDemoFindsWhatOwnProjectionsLack(t *testing.T) {
	t.Parallel()
	bin, dir := t.TempDir(), t.TempDir()
	rules, file := filepath.Join(dir, "mine.yaml"), filepath.Join(dir, "log.csv")
	script := "#!/bin/sh\nPROJECTIONS=" + rules + " exec " + binaries.Projector + " \"$@\"\n" // without what counts
	for path, text := range map[string]string{
		rules: ownRules, file: "aggregateId,type,time,to\na,Moved,2026-03-01,x\n", filepath.Join(bin, "projector"): script,
	} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, binary := range []string{binaries.Sandbox, binaries.Publisher} {
		if err := os.Symlink(binary, filepath.Join(bin, filepath.Base(binary))); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := demo.Parse([]string{"--input", file, "--projections", rules, "--no-faults", "--bin", bin, "--dir", t.TempDir(), "--timeout", "20s"}, func(string) string { return "" }, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := demo.New(cfg, io.Discard).Run(within(t)); err == nil && r.Passed {
		t.Error("verdict: got a pass, though no event was seen in the read model")
	}
}

// How often an event was applied does not show in the latest data.
func TestDemo_TheDemoFindsEventsOfAFileThatAreAppliedTwice(t *testing.T) {
	t.Parallel()
	bin, file := t.TempDir(), filepath.Join(t.TempDir(), "log.csv")
	script := "#!/bin/sh\nsed 's/\"events\": 1/\"events\": 2/' \"$PROJECTIONS\" > \"$0.yaml\"\nPROJECTIONS=\"$0.yaml\" exec " + binaries.Projector + " \"$@\"\n"
	for path, text := range map[string]string{
		file: "aggregateId,type,time,to\na,Moved,2026-03-01,x\na,Praised,2026-03-02,\na,Moved,2026-03-03,y\n", filepath.Join(bin, "projector"): script,
	} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, binary := range []string{binaries.Sandbox, binaries.Publisher} {
		if err := os.Symlink(binary, filepath.Join(bin, filepath.Base(binary))); err != nil {
			t.Fatal(err)
		}
	}
	r := play(t, bin, "--input", file, "--no-faults", "--projectors", "1")
	if c := check(t, r, witness.AppliedTwice); c.Passed || c.Got != 3 {
		t.Errorf("%s: got %v, want 3", c.Name, c.Got)
	}
	if c := check(t, r, witness.WrongDocuments); !c.Passed {
		t.Errorf("%s: got %q, want the latest data to be right", c.Name, c.Samples)
	}
}

func TestDemo_TheDemoStaysUpWhereItIsToBeKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rules, file := filepath.Join(dir, "mine.yaml"), filepath.Join(dir, "log.csv")
	unmoved := ownRules + "  - {name: unmoved, collection: unmoved, on: {Stayed: {inc: {stays: 1}}}}\n"
	for path, text := range map[string]string{rules: unmoved, file: "order,activity,at,to\nÄ 1,Moved,2026-03-01T12:00:00+01:00,x\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := demo.Parse([]string{
		"--input", file, "--fields", "aggregateId=order,type=activity,time=at", "--projections", rules, "--keep",
		"--bin", filepath.Dir(binaries.Publisher), "--dir", t.TempDir(),
	}, func(string) string { return "" }, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(within(t))
	defer stop()
	var out output
	d := demo.New(cfg, &out)
	r, err := d.Run(ctx)
	if err != nil || !r.Passed {
		t.Fatalf("run: got %v and checks that failed: %q", err, failed(r))
	}
	var counted []string
	for _, f := range r.Figures {
		if name, is := strings.CutPrefix(f.Name, "documents in "); is {
			counted = append(counted, name+" "+f.Note)
		}
	}
	if want := []string{"mine ", `unmoved does the projection name the types that the input has? "Moved"`}; !slices.Equal(counted, want) {
		t.Errorf("documents are counted in %q, want %q: of the own projections, and of nothing else", counted, want)
	}
	lingered := make(chan error, 1)
	go func() { lingered <- d.Linger(ctx) }()
	client := clientOf(ctx, t, &out)
	events := client.Database("shop").Collection("order_events")
	event := bson.D{{Key: "aggregateId", Value: "mine"}, {Key: "version", Value: 1}, {Key: "type", Value: "Moved"}, {Key: "data", Value: bson.D{{Key: "to", Value: "here"}}}}
	if _, err := events.InsertOne(ctx, event); err != nil {
		t.Fatal(err)
	}
	await(t, "what was written behind the report", func(ctx context.Context) (bool, string) {
		n, err := client.Database("shop_read").Collection("mine").CountDocuments(ctx, bson.D{{Key: "to", Value: "here"}})
		return err == nil && n == 1, out.String()
	})
	stop()
	if err := <-lingered; err != nil {
		t.Errorf("Linger = %v, want nil", err)
	}
}

// A demo that cannot fail shows nothing: here the projectors keep another read
// model than the one that is judged.
func TestDemo_TheDemoFailsWhenTheReadModelIsWrong(t *testing.T) {
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
