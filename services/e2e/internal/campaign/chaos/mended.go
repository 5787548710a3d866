package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/check/witness"
)

// What no damage explains, where operators repair read models.
const (
	Undamaged     = "documents that differed before they were repaired, and that nobody had damaged"
	NeedlessHalts = "halted aggregates of which nobody had damaged a document"
)

// mendRounds bounds how often what is still wrong is dealt with at the end.
const mendRounds = 8

// mendAll brings what operators have begun to its end, and mends what they have damaged,
// as the documentation says, until nothing is left. Then a projection was built anew,
// and a comparison finds nothing.
func (c *campaign) mendAll(ctx context.Context) error {
	if err := c.endResends(ctx); err != nil {
		return err
	}
	for range mendRounds {
		// That nothing moves is not enough: nobody may lead for a while.
		if err := c.witness.AwaitSettled(ctx); err != nil {
			return err
		}
		halted, err := c.dealWithHalts(ctx)
		if err != nil {
			return err
		}
		if halted {
			continue
		}
		differ, err := c.mendDamage(ctx)
		if err != nil {
			return err
		}
		rebuilt, err := c.endRebuild(ctx)
		if err != nil {
			return err
		}
		if !differ && !rebuilt {
			return c.endCompared(ctx)
		}
	}
	return fmt.Errorf("read models are not mended after %d rounds", mendRounds)
}

// endResends has the resend under way come to its end, and notes those that are done. Where
// none of them says what it had to send, one more is asked for.
func (c *campaign) endResends(ctx context.Context) error {
	all, err := c.awaitResends(ctx)
	if err == nil && !slices.ContainsFunc(c.repairs.resends, func(asked resend) bool { return asked.judgedBy(all) }) {
		if err = c.resendAtEnd(ctx); err == nil {
			all, err = c.awaitResends(ctx)
		}
	}
	if err != nil {
		return err
	}
	c.repairs.mu.Lock()
	defer c.repairs.mu.Unlock()
	for _, asked := range c.repairs.resends {
		at := slices.IndexFunc(all, func(s resendSaid) bool { return s.ID == asked.id })
		switch {
		case at < 0:
			c.wrong("resend %s is not among those that publisher resend status names", asked.id)
		case all[at].State == "incomplete" || all[at].Failed > 0:
			c.wrong("resend %s is %s, with %d failed: %v", asked.id, all[at].State, all[at].Failed, all[at].Short)
		case all[at].State == "cancelled" && !c.repairs.cancels[asked.id]:
			c.wrong("resend %s is cancelled, and nobody has asked for that", asked.id)
		case asked.judgedBy(all):
			c.witness.Resent(asked.id, asked.group, asked.at, asked.selects)
			c.repairs.judged++
		}
	}
	return nil
}

// judgedBy says whether a resend is done, as the publisher says, and can be judged.
func (r *resend) judgedBy(all []resendSaid) bool {
	return r.selects != nil && slices.ContainsFunc(all, func(s resendSaid) bool { return s.ID == r.id && s.State == "done" })
}

// awaitResends waits until no resend is under way, and returns all that there were.
func (c *campaign) awaitResends(ctx context.Context) ([]resendSaid, error) {
	for {
		output, err := c.cluster.Publishers[0].CommandIn(ctx, nil, "resend", "status", "--all", "--json")
		all := resendsIn(output)
		if err != nil && len(all) == 0 && len(c.repairs.resends) == 0 {
			return nil, nil // there never was one
		}
		under := slices.IndexFunc(all, func(s resendSaid) bool { return !slices.Contains([]string{"done", "cancelled", "incomplete"}, s.State) })
		if err == nil && under < 0 {
			return all, nil
		}
		if under >= 0 && all[under].State == "paused" {
			_, _ = c.cluster.Publishers[0].CommandIn(ctx, nil, "resend", "resume", "--why", "chaos")
		}
		if !sleepUntil(ctx, time.Now().Add(time.Second)) {
			return nil, fmt.Errorf("a resend comes to no end: %s", output)
		}
	}
}

// resendAtEnd asks for everything to be sent again, for nobody, until that is begun.
func (c *campaign) resendAtEnd(ctx context.Context) error {
	const nobody = "nobody"
	c.witness.MayResend(nobody)
	for {
		at := time.Now()
		output, err := c.cluster.Publishers[0].CommandIn(ctx, nil, "resend", "--json", "--why", "chaos", "--rate", "0", "--all", "--group", nobody)
		if said, found := saidOfResend(output); err == nil && found {
			c.remedied("remedy, a resend", "everything is sent again, for nobody", "at once")
			c.repairs.asked(resend{said.ID, nobody, at, everything})
			return nil
		}
		if !sleepUntil(ctx, time.Now().Add(time.Second)) {
			return fmt.Errorf("no resend is begun: %s", outcomeOf(output, err))
		}
	}
}

// dealWithHalts redrives what is halted. An aggregate of which something was damaged, and to
// which events came that were sent long ago, may be, and no other one.
func (c *campaign) dealWithHalts(ctx context.Context) (some bool, err error) {
	var all []struct {
		ID     string `bson:"_id"`
		Reason string `bson:"reason"`
	}
	cursor, err := c.witness.ReadModel().Collection(halts).Find(ctx, bson.D{})
	if err == nil {
		err = cursor.All(ctx, &all)
	}
	if err != nil {
		return false, fmt.Errorf("look for halts: %w", err)
	}
	for _, h := range all {
		if !c.repairs.anyTouched(h.ID) {
			c.unexplained(&c.repairs.needless, "%s is halted, and nobody has damaged a document of it: %s", h.ID, h.Reason)
		}
		output, err := c.cluster.Projectors[0].CommandIn(ctx, nil, "parked", "redrive", h.ID)
		c.remedied("remedy, a redrive", "what is halted of "+h.ID+" is redriven: "+h.Reason, outcomeOf(output, err))
	}
	return len(all) > 0, nil
}

// mendDamage compares all documents with the source, with nothing moving: what the command
// names must be what the witness finds, exactly. What it offers is done.
func (c *campaign) mendDamage(ctx context.Context) (some bool, err error) {
	n := c.cluster.Projectors[0]
	want, err := c.differing(ctx)
	if err != nil {
		return false, err
	}
	v, output, failed := c.verify(ctx, n, "1s")
	if !v.ended {
		c.say("verify: %s", outcomeOf(output, failed))
		return true, nil // a rebuild that was killed may be under way
	}
	for _, view := range single {
		if got := v.ids(view); !slices.Equal(got, want[view]) {
			c.wrong("verify names %q of %s, and %q differ", got, view, want[view])
		}
		some = some || len(want[view]) > 0
	}
	c.repairs.mu.Lock()
	c.repairs.compared += len(v.differ)
	c.repairs.mu.Unlock()
	if len(v.differ) > 0 {
		c.remedied("remedy, of damage", fmt.Sprintf("%d documents differ, and are mended", len(v.differ)), strings.TrimPrefix(c.mend(ctx, n, v, anyDocument), "; "))
	}
	return some || len(v.differ) > 0, nil
}

// differing are the documents of each view that are not what the source makes of them. Only
// what somebody has damaged may be among them: whatever else differs would be mended with it.
func (c *campaign) differing(ctx context.Context) (map[string][]string, error) {
	differ := make(map[string][]string)
	for _, view := range c.views() {
		ids, err := c.witness.Differing(ctx, view)
		if err != nil {
			return nil, err
		}
		differ[view] = ids
		for _, id := range ids {
			if !c.repairs.isTouched(document{view, id}) {
				c.unexplained(&c.repairs.undamaged, "%s of %s differs, and nobody has damaged it", id, view)
			}
		}
	}
	return differ, nil
}

// unexplained notes what no damage explains.
func (c *campaign) unexplained(among *validate.Findings, format string, args ...any) {
	c.repairs.mu.Lock()
	defer c.repairs.mu.Unlock()
	if among.Add(format, args...); among.Count <= len(among.Samples) {
		c.say("WRONG: "+format, args...)
	}
}

// endRebuild brings the rebuild to its end, or does one where none came to its end before.
func (c *campaign) endRebuild(ctx context.Context) (some bool, err error) {
	view := c.rebuilt()
	c.repairs.mu.Lock()
	wanted := c.repairs.begun[view] || c.repairs.rebuilt[view] == 0
	c.repairs.mu.Unlock()
	if !wanted {
		return false, nil
	}
	c.repairs.begin(view)
	output, err := c.cluster.Projectors[0].CommandIn(ctx, nil, c.rebuildArgs(view, "--rate", "0", "--grace", "0s")...)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	c.remedied("remedy, a projection built anew", view+" is built anew", outcomeOf(output, err))
	if err == nil {
		c.repairs.ended(view)
	}
	return true, nil
}

// endCompared compares all once more, and looks that nothing is said to be missing.
func (c *campaign) endCompared(ctx context.Context) error {
	n := c.cluster.Projectors[0]
	if v, output, err := c.verify(ctx, n, "1s"); err != nil || len(v.differ) > 0 {
		c.wrong("verify, with everything mended: %v: %s", err, outcomeOf(output, err))
	}
	if output, err := n.CommandIn(ctx, nil, "incomplete", "list"); err != nil || strings.Contains(output, `"aggregate"`) {
		c.wrong("incomplete list, with everything mended: %v: %s", err, firstLine(output))
	}
	return nil
}

// judgeRepairs writes into the report what readers have seen, and what was done.
func (c *campaign) judgeRepairs(ctx context.Context, r *report.Report) error {
	if c.repairs == nil {
		return nil
	}
	figures := c.repairs.figures()
	for _, name := range slices.Sorted(maps.Keys(figures)) {
		r.Figures = append(r.Figures, report.Figure{Name: name, Value: figures[name], Unit: report.Count})
	}
	if c.repairs.readsAnew == 0 || c.repairs.rebuilt[c.rebuilt()] == 0 {
		r.Checks = append(r.Checks, report.Impossible("looks of readers at what is being built anew", 0, report.Count, "they have seen nothing of it"))
	}
	if c.repairs.judged == 0 {
		r.Checks = append(r.Checks, report.Impossible(witness.NotResent, 0, report.Count, "no resend was done of which is known what it had to send"))
	}
	seen := c.repairs.seen
	if len(c.repairs.erased) > 0 {
		versions, err := c.erasures(ctx)
		if err != nil {
			return err
		}
		seen = seen.And(unexplained(c.repairs.erased, versions))
	}
	r.Checks = append(r.Checks,
		report.AtMost(Undamaged, float64(c.repairs.undamaged.Count), 0, report.Count, c.repairs.undamaged.Samples...),
		report.AtMost(NeedlessHalts, float64(c.repairs.needless.Count), 0, report.Count, c.repairs.needless.Samples...),
		report.AtMost("documents that readers saw neither old nor new", float64(seen.Count), 0, report.Count, seen.Samples...),
		report.AtMost("commands that did not do what they promise", float64(c.broken.Count), 0, report.Count, c.broken.Samples...))
	return nil
}
