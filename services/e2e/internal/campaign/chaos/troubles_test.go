package chaos

import (
	"context"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/cluster/clustertest"
)

// withNodes is a campaign of services that are not started.
func withNodes(t *testing.T) *campaign {
	t.Helper()
	c := &campaign{
		cfg: Config{Lease: 3 * time.Second}, out: io.Discard, began: time.Now(),
		taken: map[string]bool{}, done: map[string]int{}, network: newNetwork(),
	}
	c.cluster = cluster.New(cluster.Config{Binaries: cluster.Binaries{Sandbox: clustertest.Binary(t)}, Dir: t.TempDir(), Publishers: 2, Projectors: 2, Backend: &cluster.Endpoints{MongoURI: "mongodb://127.0.0.1:1/", ServiceBus: "Endpoint=sb://127.0.0.1:1;"}})
	return c
}

// oddities are a message of publisher-1's term behind the first of publisher-2's, and a
// write of projector-1 behind the first of projector-2, at a time and some seconds later.
func oddities(at time.Time) histories {
	second := func(n int) time.Time { return at.Add(time.Duration(n) * time.Second) }
	send := func(term int64, n int) validate.Send {
		return validate.Send{Event: validate.Event{Aggregate: "a", Version: int64(n)}, Stream: "s", Term: term, Enqueued: second(n)}
	}
	apply := func(hold string, n int) validate.Apply {
		return validate.Apply{Document: "a", Version: int64(n), Hold: hold, At: second(n).Unix()}
	}
	return histories{
		sends:   []validate.Send{send(1, -20), send(2, 0), send(1, 4)},
		claims:  []validate.Checkpoint{{Stream: "s", Owner: "publisher-1", Term: 1}, {Stream: "s", Owner: "publisher-2", Term: 2}},
		applies: []validate.Apply{apply("projector-1-AB/1", -20), apply("projector-2-AB/1", 0), apply("projector-1-AB/1", 4)},
	}
}

// What is odd is allowed where a fault explains it, which was done to whoever did it, at
// a time that can have to do with it, and of a kind that can.
func TestExplained_OnlyByFaultsThatCan(t *testing.T) {
	t.Parallel()
	const sends, writes = witness.OverlappingTerms, witness.WorkedOnAtOnce
	for name, tt := range map[string]struct {
		kind, what string
		earlier    time.Duration
		of         string
		want       bool
	}{
		"its leader was frozen":                 {"SIGSTOP of the leader", "SIGSTOP of publisher-1", 0, sends, true},
		"the other leader was":                  {"SIGSTOP of the leader", "SIGSTOP of publisher-2", 0, sends, false},
		"long before":                           {"SIGSTOP of the leader", "SIGSTOP of publisher-1", time.Minute, sends, false},
		"its leader was asked to stop":          {"SIGTERM to the leader", "SIGTERM to publisher-1", 0, sends, false},
		"its connection was slow":               {"slow connection", "latency toxic between publisher-1 and Service Bus", 0, sends, true},
		"its connection was cut":                {"cut connection", "publisher-1 cut off from Service Bus", 0, sends, true},
		"its clock has jumped":                  {"wrong clock of a publisher", "clock of publisher-1 ahead by 1h0m0s, and after 12 s by 2m0s", steadyClock, sends, true},
		"the servers were frozen":               {"SIGSTOP of the servers", "SIGSTOP of the servers", 0, sends, true},
		"the servers' clock is wrong, for good": {serversClock, "clock of the servers ahead by 2s, and after 12 s by 1s", time.Hour, sends, true},
		"session locks were lost":               {"session locks lost", "servicebus.lose-session-locks (3 affected)", 0, sends, false},
		"the servers were killed":               {"SIGKILL of the servers, data kept", "SIGKILL of the servers", 0, sends, false},
		"the session was taken":                 {"session locks lost", "servicebus.lose-session-locks (3 affected)", 0, writes, true},
		"it was taken long before":              {"session locks lost", "servicebus.lose-session-locks (3 affected)", time.Minute, writes, false},
		"the holder was frozen":                 {"SIGSTOP of a projector", "SIGSTOP of projector-1", 0, writes, true},
		"the other one was":                     {"SIGSTOP of a projector", "SIGSTOP of projector-2", 0, writes, false},
		"the holder was killed":                 {"SIGKILL of a projector", "SIGKILL of projector-1", 0, writes, false},
		"the holder's connection was half open": {"half-open connection", "timeout toxic between projector-1 and Service Bus", 0, writes, true},
		"the database was slow":                 {"slow database", "mongodb.delay", 0, writes, false},
		"the holder's connection was narrow":    {"narrow connection", "bandwidth toxic between projector-1 and Service Bus", 0, writes, false},
		"the broker was killed":                 {"SIGKILL of the servers, data kept", "SIGKILL of the servers", 0, writes, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := withNodes(t)
			if err := c.cluster.StartServers(t.Context()); err != nil {
				t.Fatal(err)
			}
			do := func(context.Context, *campaign, *rand.Rand) (string, func(context.Context) error, error) {
				return tt.what, nil, nil
			}
			if err := c.inject(t.Context(), injection{fault: fault{name: tt.kind, do: do}}); err != nil {
				t.Fatal(err)
			}
			_, unexplained, can := c.explained(tt.of, oddities(time.Now().Add(tt.earlier)))
			if !can || (unexplained.Count == 0) != tt.want {
				t.Errorf("got %d unexplained %q, want it explained: %v", unexplained.Count, unexplained.Samples, tt.want)
			}
		})
	}
}

// A leader that is killed beside a resend has handed as much to the network as any.
func TestExplained_ByAKillBesideARepair(t *testing.T) {
	t.Parallel()
	c := withStandIns(t, 0)
	n := c.cluster.Publishers[0]
	clustertest.Up(t, n)
	from := time.Now()
	what := c.killBeside(t.Context(), killedLeader, func(context.Context, *campaign, *rand.Rand) *cluster.Node { return n })
	got := c.troubles(func(e effect) bool { return e.delays })
	if !strings.Contains(what, n.Name) || len(got) != 1 || got[0].Node != n.Name || got[0].From.Before(from) {
		t.Errorf("%q: got %v, want one that %s has suffered", what, got, n.Name)
	}
}

func TestExplained_NothingWithoutAFault(t *testing.T) {
	t.Parallel()
	c := withNodes(t)
	for _, kind := range []string{witness.OverlappingTerms, witness.WorkedOnAtOnce} {
		if by, unexplained, _ := c.explained(kind, oddities(time.Now())); by.Value != 0 || unexplained.Count != 1 {
			t.Errorf("%s: got %v explained and %d unexplained, want none and one", kind, by.Value, unexplained.Count)
		}
	}
	if _, _, can := c.explained(witness.AppliedTwice, oddities(time.Now())); can {
		t.Error("an event that was applied twice: got a fault that explains it, want none")
	}
}

func TestJudge_WhatNoFaultExplainsFails(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, kind := range []string{witness.OverlappingTerms, witness.WorkedOnAtOnce} {
		for name, all := range map[string]bool{"with a fault": true, "without one": false} {
			c, r := withNodes(t), report.Report{}
			if all {
				c.answeredLate(now, now)
			}
			c.judgeFound(&r, witness.Verdict{Violations: []witness.Violation{{Name: kind}}}, nil, oddities(now))
			if r.Judge(); r.Passed != all {
				t.Errorf("%s, %s: passed is %v, want %v", kind, name, r.Passed, all)
			}
		}
	}
}

// Servers whose clock was wrong have the right one when they are started again.
func TestTroubles_AWrongClockOfTheServersLastsUntilTheyStartAgain(t *testing.T) {
	t.Parallel()
	began := time.Now().Add(-time.Hour)
	at := func(minute int) time.Time { return began.Add(time.Duration(minute) * time.Minute) }
	c := &campaign{sufferings: []suffering{
		{kind: serversClock, from: at(0), to: at(1)},
		{kind: "SIGSTOP of the servers", from: at(2), to: at(3)},
		{kind: "full disk of the servers", from: at(4), to: at(5)},
		{kind: "SIGKILL of the servers, data kept", from: at(6), to: at(7)},
	}}
	got := c.troubles(func(e effect) bool { return e.delays && e.takes && e.after > 0 })
	want := []validate.Trouble{{From: at(0).Add(-serversWrong), To: at(5).Add(serversWrong)}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestEffects_AreThoseOfFaultsThereAre(t *testing.T) {
	t.Parallel()
	names := []string{slowServers}
	for _, f := range faultKinds() {
		names = append(names, f.name)
	}
	for name := range maps.Keys(effects) {
		if !slices.Contains(names, name) {
			t.Errorf("there is no fault %q, of %s", name, strings.Join(names, ", "))
		}
	}
}
