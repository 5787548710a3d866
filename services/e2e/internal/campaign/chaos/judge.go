package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
)

// operatorsMay are what mistakes with checkpoints may do, as long as nothing is lost:
// one that is set back is back, and so are the terms that count in it.
var operatorsMay = []string{witness.CheckpointsWentBack, witness.TermsShared, witness.TermsUnclaimed, witness.LeasesOverlapping, witness.OverlappingTerms, witness.OutOfOrder, witness.PositionsBack, witness.Copied}

// judge writes the verdict into the report.
func (c *campaign) judge(ctx context.Context, r *report.Report) error {
	if c.cfg.Operators != "" {
		gaps, ofNobody, err := c.witness.Forgive(ctx, c.doings())
		if err != nil {
			return err
		}
		r.Checks = append(r.Checks,
			report.AtMost(ofNobody.Name, float64(ofNobody.Count), 0, report.Count, ofNobody.Samples...),
			report.AtMost("commands that did not do what they promise", float64(c.broken.Count), 0, report.Count, c.broken.Samples...))
		for _, g := range gaps {
			c.say("the ledger names %s to %s of %s: %s", g.From.Format(time.TimeOnly), g.To.Format(time.TimeOnly), g.Stream, g.Decision)
		}
	}
	v, err := c.witness.Judge(ctx)
	if err != nil {
		return err
	}
	left, err := c.witness.AtRest(ctx)
	if err != nil {
		return err
	}
	written, _ := c.witness.Ledger.Counts()
	r.Figures = []report.Figure{
		{Name: "faults", Value: float64(len(c.faults)), Unit: report.Count},
		{Name: "events written", Value: float64(written), Unit: report.Count},
		{Name: "messages accepted", Value: float64(len(v.Sends)), Unit: report.Count, Note: "repeats within the broker's window of duplicates are dropped and not counted"},
		{Name: "events in the read model", Value: float64(v.Applied), Unit: report.Count},
		{Name: "terms of leadership", Value: float64(terms(v)), Unit: report.Count},
		{Name: "recovery and drain after the last fault", Value: c.recovery.Seconds(), Unit: report.Seconds},
		{Name: "longest restart of the servers", Value: c.restarting.Seconds(), Unit: report.Seconds},
	}
	if err := c.judgeRepairs(ctx, r); err != nil {
		return err
	}
	for _, kind := range slices.Sorted(maps.Keys(c.done)) {
		r.Figures = append(r.Figures, report.Figure{Name: "done: " + kind, Value: float64(c.done[kind]), Unit: report.Count})
	}
	undone := c.notDone()
	r.Figures = append(r.Figures, report.Figure{Name: "kinds of faults that were not done", Value: float64(len(undone)), Unit: report.Count, Note: strings.Join(undone, ", ")})
	for _, n := range c.cluster.Nodes() {
		r.Figures = append(r.Figures, report.Figure{Name: "memory of " + n.Name, Value: float64(n.Usage().ResidentBytes), Unit: report.Bytes, Note: "at most"})
	}
	if c.cfg.Operators != "" {
		r.Figures = append(r.Figures,
			report.Figure{Name: "events that a ledger names", Value: float64(v.Forgiven), Unit: report.Count},
			report.Figure{Name: "events that operators have left out", Value: float64(c.given()), Unit: report.Count},
			report.Figure{Name: "commands that were not refused", Value: float64(len(c.mistakes)), Unit: report.Count})
	}
	if c.lacking != nil {
		r.Figures = append(r.Figures, c.lacking.figures()...)
	}
	seen := histories{sends: v.Sends, claims: c.witness.Checkpoints.History(), applies: c.witness.Applies.History()}
	c.judgeFound(r, v, left, seen)
	r.Checks = append(r.Checks, report.AtMost("processes that ended by themselves", float64(len(c.vanished)), 0, report.Count, c.vanished...))
	leaks, failed := c.cluster.Leaks(ctx)
	r.Checks = append(r.Checks, report.NoneOf(cluster.Leaked, leaks, failed))
	left, err = c.stopped(ctx)
	if err != nil {
		return err
	}
	for _, f := range left {
		r.Checks = append(r.Checks, report.AtMost(f.Name, float64(f.Count), 0, report.Count, f.Samples...))
	}
	drain := report.AtMost("recovery and drain after the last fault", c.recovery.Seconds(), c.bound.Seconds(), report.Seconds)
	if c.drained != nil {
		drain.Passed, drain.Samples = false, []string{fmt.Sprint(c.drained)}
	}
	r.Checks = append(r.Checks, drain)
	if len(c.faults) == 0 || written == 0 {
		r.Checks = append(r.Checks, report.Impossible("anything at all", 0, report.Count, "no fault was injected, or nothing was written"))
	}
	return nil
}

// notDone are the kinds of faults that found nobody, or whose turn did not come.
func (c *campaign) notDone() []string {
	var names []string
	for _, f := range c.cfg.kinds() {
		if c.done[f.name] == 0 {
			names = append(names, f.name)
		}
	}
	return names
}

// judgeFound writes into the report which violations are allowed, and which are not.
func (c *campaign) judgeFound(r *report.Report, v witness.Verdict, left []witness.Violation, seen histories) {
	for _, f := range slices.Concat(v.Violations, left) {
		if why := c.operatorsMean(f.Name); why != "" {
			r.Figures = append(r.Figures, report.Figure{Name: f.Name, Value: float64(f.Count), Unit: report.Count, Note: "allowed: " + why})
			continue
		}
		if figure, unexplained, can := c.explained(f.Name, seen); can {
			r.Figures, f.Findings = append(r.Figures, figure), unexplained
		}
		r.Checks = append(r.Checks, v.Check(f))
	}
}

// operatorsMean is why violations of a kind are what an operator has done, "" where they
// are not.
func (c *campaign) operatorsMean(kind string) string {
	switch {
	case c.lacking != nil && (kind == witness.DocumentsWentBack || kind == witness.OrderUnseen):
		return "an operator has put them back"
	case c.cfg.Operators == "":
		return ""
	case slices.Contains(operatorsMay, kind) && slices.ContainsFunc(movesCheckpoints, func(mistake string) bool { return c.done[mistake] > 0 }):
		return "a checkpoint that an operator moves begins anew"
	case kind == witness.LedgerGaps:
		return "operators decide what is passed over"
	}
	return ""
}

// lastBlow is when a fault last ended that may have left cursors behind, or a service had to
// be killed; the servers' clock may have been wrong. Zero where that never was.
func (c *campaign) lastBlow() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.killed
	for _, s := range c.sufferings {
		if c.cfg.Operators != "" && !slices.Contains(killing, s.kind) {
			continue // nobody is killed, or cut off
		}
		if s.to.After(last) {
			last = s.to
		}
	}
	if last.IsZero() {
		return last
	}
	return last.Add(2 * serversWrong)
}

// stopped stops all services in good order, and looks at what they leave.
func (c *campaign) stopped(ctx context.Context) ([]witness.Violation, error) {
	stop, cancel := context.WithTimeout(ctx, cluster.StopTime)
	defer cancel()
	var unwell validate.Findings
	for _, n := range c.services() {
		if !n.Running() {
			unwell.Add("%s had ended by itself: see %s", n.Name, n.LogPath())
		}
	}
	c.witness.AwaitUnlocked(stop)
	for _, err := range c.witness.StopAtWork(stop, c.cfg.mode().Writer(c.witness.Client, c.cluster.Names()), c.services()...) {
		unwell.Add("%v", err)
	}
	left, err := c.witness.AtStop(stop, c.lastBlow())
	return append(left, witness.Violation{Name: "services that did not stop in good order", Findings: unwell}), err
}

func terms(v witness.Verdict) int {
	type term struct {
		stream string
		number int64
	}
	seen := map[term]bool{}
	for _, s := range v.Sends {
		seen[term{s.Stream, s.Term}] = true
	}
	return len(seen)
}
