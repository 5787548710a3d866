package long

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/harness/poll"
)

func TestLegs_EveryKindOfCampaignComesInEachRound(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for n := range uint64(shares) {
		l := legs(Config{Seed: 7, Duration: time.Hour, Rate: 1}, n)
		if seen[l.name]++; l.seed != 7+n {
			t.Errorf("leg %d: got seed %d, want %d", n, l.seed, 7+n)
		}
	}
	for _, name := range []string{"faults", "operators' mistakes", "a read database of before", "what is set aside, and groups", "crash points", "upgrades"} {
		if seen[name] == 0 {
			t.Errorf("got %v, want %s among them", seen, name)
		}
	}
}

func TestLegs_TheSeedSaysWhichComesFirst(t *testing.T) {
	t.Parallel()
	first := map[string]bool{}
	for seed := range uint64(shares) {
		first[legs(Config{Seed: seed, Duration: time.Hour, Rate: 1}, 0).name] = true
	}
	if len(first) != 6 {
		t.Errorf("got runs that begin with %v, want each kind of campaign", first)
	}
}

func TestUpgrades_WhatWasNotRunHasNotPassed(t *testing.T) {
	t.Parallel()
	const passed, skipped = "=== RUN   TestUpgrade_A\n--- PASS: TestUpgrade_A (1.0s)\n    --- SKIP: TestUpgrade_A/b (0.00s)\n", "--- SKIP: TestUpgrade_C (0.00s)\n"
	for name, test := range map[string]struct {
		err  error
		said string
		want bool
	}{
		"all":       {nil, passed + "PASS\nok  \tscenario\t1.0s\n", true},
		"none":      {nil, skipped + "PASS\nok  \tscenario\t0.1s\n", false},
		"some":      {nil, passed + skipped + "PASS\nok  \tscenario\t1.0s\n", false},
		"no tests":  {nil, "testing: warning: no tests to run\nPASS\n", false},
		"a failure": {errors.New("exit status 1"), passed + "FAIL\n", false},
	} {
		r := report.Report{Checks: judgeUpgrades(test.err, test.said)}
		if r.Judge(); r.Passed != test.want {
			t.Errorf("%s: passed is %t, want %t: %v", name, r.Passed, test.want, r.Checks)
		}
	}
}

// What the tests of upgrades have started ends with them.
func TestUpgrades_ThoseThatAreCancelledEndWithAllThatTheyHaveStarted(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "written")
	script := "#!/bin/sh\nsh -c 'while echo more >> " + file + "; do sleep 0.01; done' &\nwait\n"
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	written := func(context.Context) (bool, string) {
		_, err := os.Stat(file)
		return err == nil, ""
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { cancel(poll.Until(ctx, "the first write", written)) }()
	r, err := upgrades(ctx, io.Discard)
	if err != nil || r.Passed {
		t.Errorf("got %v, %v, want a report that has not passed", r, err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	later, over := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer over()
	if poll.Until(later, "another write", written) == nil {
		t.Error("it writes on after the end of the tests")
	}
}

func TestSummary_SaysWhatFailedAndWhatWasNotDone(t *testing.T) {
	t.Parallel()
	r := &report.Report{Faults: slices.Repeat([]report.Fault{{Kind: "election"}}, 3), Setup: []report.Fact{{Name: "settings", Text: "defaults"}}, Figures: []report.Figure{
		{Name: "events written", Value: 2000},
	}, Checks: []report.Check{report.AtMost("lost", 1, 0, report.Count)}}
	text := summary(Config{Seed: 4}, time.Unix(0, 0), time.Hour, []done{{leg{name: "faults", seed: 4}, r}})
	for _, want := range []string{"| faults | 3, of 1 kinds |", "| faults | 4 | defaults | 3 | 2,000 | lost |", "| election | 3 |", "Not done:\n\n- SIGKILL of the leader", "operator: repartition", "operator: read database of before"} {
		if !strings.Contains(text, want) {
			t.Errorf("got %s, want it to say %q", text, want)
		}
	}
}

// The table says of each fault that is counted what it was, also of campaigns that were stopped.
func TestSummary_CountsTheFaultsAndNothingElse(t *testing.T) {
	t.Parallel()
	whole := &report.Report{Faults: []report.Fault{{Kind: "election"}}, Remedies: make([]report.Fault, 2)}
	stopped := &report.Report{Faults: []report.Fault{{Kind: "election"}, {Kind: "cut connection"}}, Stopped: "canceled"}
	for _, tt := range []struct {
		all  []done
		want string
	}{
		{[]done{{leg{name: "faults"}, whole}}, "| faults | 1, of 1 kinds |"},
		{[]done{{leg{name: "faults"}, whole}, {leg{name: "faults"}, stopped}}, "| faults | 3, of 2 kinds |"},
	} {
		text := summary(Config{}, time.Unix(0, 0), time.Hour, tt.all)
		if !strings.Contains(text, tt.want) {
			t.Errorf("got %s, want it to say %q", text, tt.want)
		}
		if len(tt.all) > 1 && (!strings.Contains(text, "| election | 2 |") || !strings.Contains(text, "| cut connection | 1 |")) {
			t.Errorf("got %s, want both kinds with how often they were done", text)
		}
	}
}

func TestRun_TwoOfOneSecondHaveDirectoriesOfTheirOwn(t *testing.T) {
	t.Chdir(t.TempDir())
	over, cancel := context.WithCancel(t.Context())
	cancel() // before the first campaign
	for range 2 {
		cfg, err := Parse(nil, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Run(over, cfg, io.Discard); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if reports, err := filepath.Glob(".run/long-*/report.md"); err != nil || len(reports) != 2 {
		t.Errorf("got %q, %v, want two", reports, err)
	}
}

func TestParse_EveryWrongFlagIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := Parse([]string{"--duration", "1ms", "--rate", "0", "more"}, io.Discard)
	for _, want := range []string{"--duration is 1ms", "--rate is 0", `no argument "more"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
}
