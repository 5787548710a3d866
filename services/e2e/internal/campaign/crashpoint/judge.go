package crashpoint

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
)

// judge writes the verdict into the report.
func (c *campaign) judge(ctx context.Context, r *report.Report) error {
	v, err := c.witness.Judge(ctx)
	if err != nil {
		return err
	}
	parked, err := c.witness.State().Collection("parked_changes").CountDocuments(ctx, bson.D{})
	if err != nil {
		return fmt.Errorf("count parked changes: %w", err)
	}
	left, err := c.witness.AtRest(ctx)
	if err != nil {
		return err
	}
	written, _ := c.witness.Ledger.Counts()
	r.Figures = append(r.Figures,
		report.Figure{Name: "events written", Value: float64(written), Unit: report.Count},
		report.Figure{Name: "messages accepted", Value: float64(len(v.Sends)), Unit: report.Count},
		report.Figure{Name: "kills", Value: float64(len(c.faults)), Unit: report.Count},
	)
	var missing validate.Findings
	for _, step := range c.cfg.steps() {
		if got := c.kills[step.Name]; got < c.cfg.Kills {
			missing.Add("%s: %d of %d", step.Name, got, c.cfg.Kills)
		}
	}
	r.Checks = append(r.Checks, report.AtMost("steps with kills missing", float64(missing.Count), 0, report.Count, missing.Samples...))
	c.judgeFound(r, v, left, c.witness.Checkpoints.History(), c.witness.Leases.History())
	r.Checks = append(r.Checks,
		report.AtMost("changes that cannot be mapped, and are not parked once", float64(max(int64(c.odd)-parked, parked-int64(c.odd))), 0, report.Count))
	leaks, failed := c.cluster.Leaks(ctx)
	r.Checks = append(r.Checks, report.NoneOf(cluster.Leaked, leaks, failed))
	stopped, err := c.stopped(ctx)
	if err != nil {
		return err
	}
	r.Checks = append(r.Checks, stopped...)
	drain := report.AtMost("backlog that did not drain", 0, 0, report.Count)
	if c.drained != nil {
		drain.Passed, drain.Got, drain.Samples = false, 1, []string{c.drained.Error()}
	}
	r.Checks = append(r.Checks, drain)
	return nil
}

// lastKill is when a service was last killed; zero where none was.
func (c *campaign) lastKill() time.Time {
	if len(c.killed) == 0 {
		return time.Time{}
	}
	return c.killed[len(c.killed)-1].To
}

// stopped stops all services in good order, and judges how they end, what they leave,
// and which had ended before.
func (c *campaign) stopped(ctx context.Context) ([]report.Check, error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.StopTime)
	defer cancel()
	if err := c.revive(); err != nil {
		return nil, err
	}
	var unwell validate.Findings
	c.witness.AwaitUnlocked(ctx)
	for _, err := range c.witness.StopAtWork(ctx, c.cfg.mode().Writer(c.witness.Client, c.cluster.Names()), c.services()...) {
		unwell.Add("%v", err)
	}
	checks := []report.Check{
		report.AtMost("processes that ended by themselves", float64(len(c.vanished)), 0, report.Count, c.vanished...),
		report.AtMost("services that did not stop in good order", float64(unwell.Count), 0, report.Count, unwell.Samples...),
	}
	left, err := c.witness.AtStop(ctx, c.lastKill())
	for _, f := range left {
		checks = append(checks, report.AtMost(f.Name, float64(f.Count), 0, report.Count, f.Samples...))
	}
	return checks, err
}

// judgeFound writes into the report what is wrong of what was found.
func (c *campaign) judgeFound(r *report.Report, v witness.Verdict, left []witness.Violation, claims []validate.Checkpoint, leases []validate.Holding) {
	for _, f := range slices.Concat(v.Violations, left) {
		switch f.Name {
		case witness.OverlappingTerms:
			// What a leader had handed to the network when it was killed arrives after it;
			// so does what waits for servers that have no processor.
			late, unexplained := validate.LateSends(v.Sends, claims, slices.Concat(c.killed, c.slow), leaseTTL, inFlight)
			r.Figures = append(r.Figures, report.Figure{Name: "messages " + f.Name, Value: float64(late.Count), Unit: report.Count, Note: "allowed: their leader was killed, or the servers answered late"})
			f.Findings = unexplained
		case witness.ParkedChanges:
			continue // some are meant to be: see below
		case witness.LeasesOverlapping:
			f.Findings = validate.LeaseOverlaps(byID(leases))
		}
		r.Checks = append(r.Checks, v.Check(f))
	}
}

// byID is a history of leases in which the incarnations of an instance are one:
// here ids are unique, and a restarted leader takes its own lease again.
func byID(history []validate.Holding) []validate.Holding {
	for i := range history {
		history[i].Incarnation = ""
	}
	return history
}
