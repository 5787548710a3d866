package demo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/check/witness"
)

// setup says what ran.
func (d *Demo) setup() []report.Fact {
	servers := "1 sandbox"
	if d.cfg.World != "" {
		servers += ", world " + d.cfg.World
	}
	if d.cfg.Backend != nil {
		servers = "servers given by environment"
	}
	lease := d.clusterLease()
	facts := []report.Fact{
		{Name: "processes", Text: fmt.Sprintf("%s, %d publishers, %d projectors", servers, d.cfg.Publishers, d.cfg.Projectors)},
		{Name: "lease", Text: fmt.Sprintf("%v, renewed every %v, given up after %v without renewal", lease.TTL, lease.Heartbeat, lease.RenewDeadline)},
	}
	if d.cfg.Input != "" {
		facts = append(facts, report.Fact{Name: "events", Text: fmt.Sprintf("%s of %s, at most %s/s, %s",
			count(len(d.cfg.log.Events)), d.cfg.Input, count(d.cfg.Rate), cmp.Or(d.cfg.Projections, "each aggregate's latest data"))})
	} else {
		facts = append(facts, report.Fact{Name: "events", Text: fmt.Sprintf("seed %d, %s/s for at least %v, %s orders, projection %s",
			d.cfg.Seed, count(d.cfg.Rate), d.cfg.Duration, count(d.cfg.Aggregates), declaration)})
	}
	faults := "SIGKILL of the leader, SIGKILL of a projector, SIGTERM to the leader"
	switch {
	case !d.cfg.Faults:
		faults = "none"
	case d.tooShort() != "":
		faults = d.tooShort()
	}
	return append(facts, report.Fact{Name: "faults", Text: faults})
}

// figures are the run's numbers.
func (d *Demo) figures(ctx context.Context, v witness.Verdict) ([]report.Figure, error) {
	figures := d.counts(v)
	documents, err := d.documents(ctx)
	if err != nil {
		return nil, err
	}
	figures = append(figures, documents...)
	if d.cluster.Sandbox != nil {
		n, err := droppedByTopic(ctx, d.cluster.Endpoints(), d.cluster.Names().Topic)
		if err != nil {
			return nil, err
		}
		figures = append(figures, report.Figure{Name: "duplicates: sent again, and dropped by the topic", Value: float64(n), Unit: report.Count})
	}
	figures = append(figures, d.nemesis.repeats.figure())
	return append(figures, d.times(v)...), nil
}

// counts are the numbers of events.
func (d *Demo) counts(v witness.Verdict) []report.Figure {
	repeats := validate.Duplicated(validate.EventsOf(v.Sends)).Count
	number := func(name string, n int, note string) report.Figure {
		return report.Figure{Name: name, Value: float64(n), Unit: report.Count, Note: note}
	}
	written, _ := d.witness.Ledger.Counts()
	return []report.Figure{
		number("events written to the source", written, fmt.Sprintf("of %s aggregates", count(d.witness.Ledger.Aggregates()))),
		number("sent: events accepted by the topic", len(v.Sends)-repeats, ""),
		number("applied: events in the read model", v.Applied, ""),
		number("set aside: events parked by the relay", v.Forgiven, ""),
		number("writes to the read model", len(d.witness.Applies.History()), "several events of one aggregate may share one"),
		number("inserts tried again", d.writer.Retries(), ""),
		number("duplicates: sent again, and accepted by the topic", repeats, ""),
	}
}

// times are durations and rates.
func (d *Demo) times(v witness.Verdict) []report.Figure {
	delays := d.witness.Ledger.Delays()
	slices.Sort(delays)
	seconds := func(name string, v time.Duration, note string) report.Figure {
		return report.Figure{Name: name, Value: v.Seconds(), Unit: report.Seconds, Note: note}
	}
	return []report.Figure{
		seconds("time of writing", d.wroteFor, ""),
		{Name: "rate of writing", Value: float64(v.Events.Len()+v.Forgiven) / d.wroteFor.Seconds(), Unit: report.PerSecond, Note: fmt.Sprintf("%s/s asked", count(d.cfg.Rate))},
		seconds("from acknowledged write to readable, median", quantile(delays, 0.5), "over the whole run, failovers included"),
		seconds("from acknowledged write to readable, 99 of 100", quantile(delays, 0.99), ""),
		seconds("from acknowledged write to readable, longest", quantile(delays, 1), ""),
	}
}

// quantile returns the value below which that share of the sorted values lies.
func quantile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}

// setAside checks that nothing was left behind: set aside is not lost, but it is
// not in the read model either.
func (d *Demo) setAside(ctx context.Context) ([]report.Check, error) {
	left, err := d.witness.AtRest(ctx)
	if err != nil {
		return nil, err
	}
	var checks []report.Check
	for _, f := range left {
		checks = append(checks, none(f.Name, f.Findings))
	}
	return append(checks, none("processes that did not stop in good order", d.nemesis.disorderly)), nil
}
