package crashpoint

import (
	"testing"
	"time"

	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
)

// What an old term sends behind a new one is allowed of a leader that was killed just
// before, for it was on its way.
func TestJudge_WhatNoKillExplainsFails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		killed string
		since  time.Duration
		want   bool
	}{
		"its leader was killed":     {"publisher-1", 0, true},
		"it was killed long before": {"publisher-1", time.Minute, false},
		"the other one was killed":  {"publisher-2", 0, false},
		"none was killed":           {"", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &campaign{}
			cl := cluster.New(cluster.Config{Dir: t.TempDir(), Publishers: 2, Backend: &cluster.Endpoints{}})
			if err := cl.StartServers(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, n := range cl.Publishers {
				if n.Name == tt.killed {
					c.killNode(n)
				}
			}
			began := time.Now().Add(tt.since)
			send := func(term int64, second int) validate.Send {
				return validate.Send{Event: validate.Event{Aggregate: "a", Version: int64(second)}, Stream: "s", Term: term, Enqueued: began.Add(time.Duration(second) * time.Second)}
			}
			claims := []validate.Checkpoint{{Stream: "s", Owner: "publisher-1", Term: 1}, {Stream: "s", Owner: "publisher-2", Term: 2}}
			sends := []validate.Send{send(1, -9), send(2, 0), send(1, 1)}
			found := []witness.Violation{{Name: witness.OverlappingTerms, Findings: validate.OverlappingTerms(sends)}}
			r := report.Report{}
			c.judgeFound(&r, witness.Verdict{Sends: sends, Violations: found}, nil, claims, nil)
			if r.Judge(); r.Passed != tt.want || len(r.Figures) != 1 || (r.Figures[0].Value == 1) != tt.want {
				t.Errorf("got passed %v and %v, want passed %v and one allowed where it is", r.Passed, r.Figures, tt.want)
			}
		})
	}
}
