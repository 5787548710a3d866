package report

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files anew")

func sample() Report {
	r := Report{
		Title:   "Change Relay demo",
		Started: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Seconds: 48.2,
		Setup:   []Fact{{"processes", "1 sandbox, 2 publishers, 3 projectors"}, {"lease", "6s"}},
		Figures: []Figure{{"events written", 60_000, Count, ""}, {"rate", 1999.6, PerSecond, "2,000/s asked"}},
		Faults:  []Fault{{At: 6.01, What: "SIGKILL publisher-1, which led term 1", Outcome: "publisher-2 sent after 5.120 s"}},
		Checks: []Check{
			AtMost("lost", 0, 0, Count),
			AtMost("first send of the new leader after a crash", 5.12, 6.3, Seconds),
			NotApplicable("planned handover", 1, Seconds, "hardly any traffic"),
		},
		Nodes: []Node{{"publisher-1", 40 << 20, 1.25, 20.8}},
		Dir:   "/tmp/run",
	}
	r.Judge()
	return r
}

func TestReport_ThePage(t *testing.T) {
	t.Parallel()
	failing := sample()
	failing.Remedies = []Fault{{At: 30, What: "a halted aggregate is redriven", Outcome: "done"}}
	failing.Checks = append(failing.Checks,
		AtMost("out of order", 2, 0, Count, "order-000001 version 2 was first seen after version 3"),
		Impossible("checkpoint went back", 0, Count, "the checkpoint was not seen"))
	for line := range asideShown + 2 {
		failing.Aside = append(failing.Aside, Aside{File: "my.ndjson", Line: line + 1, Event: "version 1 of a\tb\n" + strings.Repeat("x", 2*longest), Reason: "why", Remedy: "what to do"})
	}
	failing.Judge()
	stopped := Report{Title: "Change Relay demo", Stopped: "no leader:\nprojector-1 has ended", Dir: "/tmp/run"}
	stopped.Judge()
	for name, r := range map[string]Report{"passed": sample(), "failed": failing, "stopped": stopped} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got strings.Builder
			if err := r.WriteText(&got); err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != string(want) {
				t.Errorf("page:\ngot\n%s\nwant\n%s", got.String(), want)
			}
		})
	}
}

func TestReport_Verdicts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		report Report
		want   bool
	}{
		{name: "all checks passed is a pass", report: Report{Checks: []Check{AtMost("a", 0, 0, Count)}}, want: true},
		{name: "the bound itself is allowed", report: Report{Checks: []Check{AtMost("a", 1, 1, Seconds)}}, want: true},
		{name: "one failed check fails all", report: Report{Checks: []Check{AtMost("a", 0, 0, Count), AtMost("b", 1, 0, Count)}}},
		{name: "no checks fail", report: Report{}},
		{name: "a run that stopped early fails", report: Report{Stopped: "interrupted", Checks: []Check{AtMost("a", 0, 0, Count)}}},
		{name: "a check that could not be made fails", report: Report{Checks: []Check{Impossible("a", 0, Count, "why")}}},
		{name: "a check without occasion does not fail", report: Report{Checks: []Check{NotApplicable("a", 0, Count, "why")}}, want: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.report.Judge()
			if got := tt.report.Passed; got != tt.want {
				t.Errorf("passed: got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestReport_TheJSONHoldsEveryFigure(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "report.json")
	want := sample()
	if err := want.WriteJSON(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got Report
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Checks) != len(want.Checks) || got.Checks[1].Got != want.Checks[1].Got || got.Nodes[0] != want.Nodes[0] || got.Figures[1] != want.Figures[1] || !got.Passed {
		t.Errorf("report: got %+v, want %+v", got, want)
	}
}

func TestReport_Thousands(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := Thousands(n); got != want {
			t.Errorf("Thousands(%d): got %s, want %s", n, got, want)
		}
	}
}

func TestNoneOf_ASearchThatFailedHasNotFoundNothing(t *testing.T) {
	t.Parallel()
	if c := NoneOf("x", nil, nil); !c.Passed {
		t.Errorf("nothing found: got %+v, want it passed", c)
	}
	if c := NoneOf("x", []string{"a"}, nil); c.Passed || c.Got != 1 {
		t.Errorf("one found: got %+v, want it failed by 1", c)
	}
	if c := NoneOf("x", nil, errors.New("the database is gone")); c.Passed {
		t.Errorf("nothing found by a search that failed: got %+v, want it failed", c)
	}
}
