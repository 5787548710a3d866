package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"changerelay/services/e2e/internal/cluster"
	"changerelay/services/e2e/internal/report"
	"changerelay/services/e2e/internal/witness"
)

// judge writes the verdict into the report.
func (c *campaign) judge(ctx context.Context, r *report.Report) error {
	v, err := c.witness.Judge(ctx)
	if err != nil {
		return err
	}
	written, _ := c.witness.Ledger.Counts()
	r.Figures = []report.Figure{
		{Name: "deeds", Value: float64(len(c.faults)), Unit: report.Count},
		{Name: "events written", Value: float64(written), Unit: report.Count},
		{Name: "messages accepted", Value: float64(len(v.Sends)), Unit: report.Count, Note: "repeats within the broker's window of duplicates are dropped and not counted"},
		{Name: "events in the read model", Value: float64(v.Applied), Unit: report.Count},
		{Name: "terms of leadership", Value: float64(terms(v)), Unit: report.Count},
		{Name: "recovery and drain after the last deed", Value: c.recovery.Seconds(), Unit: report.Seconds},
		{Name: "longest restart of the servers", Value: c.restarting.Seconds(), Unit: report.Seconds},
	}
	for _, kind := range slices.Sorted(maps.Keys(c.done)) {
		r.Figures = append(r.Figures, report.Figure{Name: "deeds: " + kind, Value: float64(c.done[kind]), Unit: report.Count})
	}
	for _, n := range c.cluster.Nodes() {
		r.Figures = append(r.Figures, report.Figure{Name: "memory of " + n.Name, Value: float64(n.Usage().ResidentBytes), Unit: report.Bytes, Note: "at most"})
	}
	for _, f := range v.Faults {
		if f.Name == witness.WorkedOnAtOnce {
			// Session locks are taken from holders who can not know: what they have in
			// hand they may still write, and the guard judges. Here it is only counted.
			r.Figures = append(r.Figures, report.Figure{Name: f.Name, Value: float64(f.Count), Unit: report.Count, Note: "allowed: the broker took the session from a holder at work"})
			continue
		}
		if f.Name == witness.OverlappingTerms {
			// A leader that is frozen between asking its lease and sending sends late.
			// That is allowed, and harmless: docs/guarantees.md, G2.
			r.Figures = append(r.Figures, report.Figure{Name: "messages " + f.Name, Value: float64(f.Count), Unit: report.Count, Note: "allowed: sent by a leader that was frozen in the act"})
			continue
		}
		r.Checks = append(r.Checks, report.AtMost(f.Name, float64(f.Count), 0, report.Count, f.Samples...))
	}
	r.Checks = append(r.Checks, report.AtMost("processes that ended by themselves", float64(len(c.vanished)), 0, report.Count, c.vanished...))
	leaks := c.cluster.Leaks(ctx)
	r.Checks = append(r.Checks, report.AtMost(cluster.Leaked, float64(len(leaks)), 0, report.Count, leaks...))
	drain := report.AtMost("recovery and drain after the last deed", c.recovery.Seconds(), c.cfg.Settle.Seconds(), report.Seconds)
	if c.drained != nil {
		drain.Passed, drain.Samples = false, []string{fmt.Sprint(c.drained)}
	}
	r.Checks = append(r.Checks, drain)
	if len(c.faults) == 0 || written == 0 {
		r.Checks = append(r.Checks, report.Impossible("anything at all", 0, report.Count, "no harm was done, or nothing was written"))
	}
	return nil
}

func terms(v witness.Verdict) int {
	seen := map[int64]bool{}
	for _, s := range v.Sends {
		seen[s.Term] = true
	}
	return len(seen)
}
