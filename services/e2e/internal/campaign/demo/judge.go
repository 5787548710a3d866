package demo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
)

// leastTraffic is how many events must have been written during a failover that
// took too long, for its length to be the relay's and not the source's.
const leastTraffic = 10

// judge writes the verdict into the report.
func (d *Demo) judge(ctx context.Context, r *report.Report) error {
	if err := d.excuse(ctx, r); err != nil {
		return err
	}
	v, err := d.witness.Judge(ctx)
	if err != nil {
		return err
	}
	setAside, err := d.setAside(ctx)
	if err != nil {
		return err
	}
	if r.Figures, err = d.figures(ctx, v); err != nil {
		return err
	}
	leaks, failed := d.cluster.Leaks(ctx)
	unsaid := report.NoneOf(cluster.Leaked, leaks, failed)
	r.Checks = slices.Concat(d.faultChecks(v), setAside, []report.Check{unsaid, d.drainCheck()}, d.failoverChecks(r, v.Sends))
	return nil
}

func (d *Demo) drainCheck() report.Check {
	c := report.AtMost("drain of the backlog after the last write", d.drainedIn.Seconds(), drainTimeout.Seconds(), report.Seconds)
	if d.drained != nil {
		c.Passed, c.Samples = false, []string{d.drained.Error()}
	}
	return c
}

// faultChecks allow no fault of any kind.
func (d *Demo) faultChecks(v witness.Verdict) []report.Check {
	var checks []report.Check
	for _, f := range v.Violations {
		if why := d.unjudged(f.Name); why != "" {
			checks = append(checks, report.NotApplicable(f.Name, 0, report.Count, why))
			continue
		}
		checks = append(checks, v.Check(f))
	}
	return checks
}

// none returns the check that nothing was found.
func none(name string, f validate.Findings) report.Check {
	return report.AtMost(name, float64(f.Count), 0, report.Count, f.Samples...)
}

// failoverChecks measures each failover between the last message of the old term
// and the first of the new one, by the broker's clock.
func (d *Demo) failoverChecks(r *report.Report, sends []validate.Send) []report.Check {
	var checks []report.Check
	handovers := validate.Handovers(sends)
	for _, f := range d.nemesis.failovers {
		name := fmt.Sprintf("failover %s, term %d to %d", f.kind, f.from, f.to)
		i := slices.IndexFunc(handovers, func(h validate.Handover) bool { return h.From == f.from && h.To == f.to })
		if i < 0 {
			checks = append(checks, report.Impossible(name, f.bound.Seconds(), report.Seconds, "another term sent in between"))
			continue
		}
		gap := handovers[i].Gap()
		r.Faults[f.fault].Outcome += d.silence(f, handovers[i])
		traffic := d.witness.Ledger.WrittenBetween(handovers[i].LastOld, handovers[i].FirstNew)
		if gap > f.bound && traffic < leastTraffic {
			why := fmt.Sprintf("%d events were written in %v, too few to tell", traffic, gap.Round(time.Millisecond))
			checks = append(checks, report.NotApplicable(name, f.bound.Seconds(), report.Seconds, why))
			continue
		}
		checks = append(checks, report.AtMost(name, gap.Seconds(), f.bound.Seconds(), report.Seconds))
	}
	return checks
}

// silence tells how long nothing was sent, and when, counted from the signal.
// With servers on other machines their clock is not ours, and only the length
// means something.
func (d *Demo) silence(f failover, h validate.Handover) string {
	text := fmt.Sprintf("; nothing was sent for %.3f s", h.Gap().Seconds())
	if d.cluster.Sandbox == nil {
		return text
	}
	return text + fmt.Sprintf(", from %.3f s to %.3f s after the signal", h.LastOld.Sub(f.signal).Seconds(), h.FirstNew.Sub(f.signal).Seconds())
}
