package chaos

import (
	"context"
	"fmt"

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
	}
	for _, f := range v.Faults {
		if f.Name == witness.OverlappingTerms {
			// A leader that is frozen between asking its lease and sending sends late.
			// That is allowed, and harmless: docs/guarantees.md, G2.
			r.Figures = append(r.Figures, report.Figure{Name: "messages " + f.Name, Value: float64(f.Count), Unit: report.Count, Note: "allowed: sent by a leader that was frozen in the act"})
			continue
		}
		r.Checks = append(r.Checks, report.AtMost(f.Name, float64(f.Count), 0, report.Count, f.Samples...))
	}
	r.Checks = append(r.Checks, report.AtMost("processes that ended by themselves", float64(len(c.vanished)), 0, report.Count, c.vanished...))
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
