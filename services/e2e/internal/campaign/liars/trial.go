package liars

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"changerelay/services/e2e/internal/campaign/modes"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/load"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/payload"
	"changerelay/services/e2e/internal/harness/pressure"
)

// The load of a trial: enough that one event in 400 is several.
const (
	events     = 3000
	aggregates = 40
	rate       = 1500
	erasing    = 0.3
	lease      = 3 * time.Second
	// drainTime is how long a liar is waited for on a machine with processors to spare, and
	// drainMore how much longer on another one: what it lost never comes.
	drainTime = 12 * time.Second
	drainMore = time.Minute
	// trialTime bounds a trial.
	trialTime = 4 * time.Minute
)

// errPlayed ends the watching when there is nothing more to watch.
var errPlayed = errors.New("played")

// trial is one relay under a short load, and its judge.
type trial struct {
	cluster *cluster.Cluster
	witness *witness.Witness
	seed    uint64
	mode    modes.Mode
}

// try runs the binaries and returns what was found, by kinds of faults.
func try(ctx context.Context, root, dir string, binaries cluster.Binaries, seed uint64, mode modes.Mode) ([]witness.Violation, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, trialTime, fmt.Errorf("the trial took longer than %v", trialTime))
	defer cancel()
	declared, judged := mode.ReadModels(false)
	t := trial{seed: seed, mode: mode, cluster: cluster.New(cluster.Config{
		Binaries: binaries, Dir: dir, Publishers: 1, Projectors: 1, Lease: cluster.LeaseOf(lease),
		Names: cluster.DefaultNames(), Projections: cluster.Projections(root, declared...), PublisherEnv: mode.Publisher, ProjectorEnv: mode.Projector,
	})}
	defer t.cluster.Close()
	if err := t.cluster.StartServers(ctx); err != nil {
		return nil, err
	}
	if err := mode.PrepareSource(ctx, t.cluster.Endpoints(), t.cluster.Names()); err != nil {
		return nil, err
	}
	var err error
	if t.witness, err = witness.Open(ctx, t.cluster.Endpoints(), t.cluster.Names(), judged); err != nil {
		return nil, err
	}
	defer t.witness.Close(ctx)
	if err := t.cluster.StartServices(); err != nil {
		return nil, err
	}
	if _, _, err := t.cluster.AwaitLeader(ctx, 0); err != nil {
		return nil, err
	}
	if err := t.play(ctx); err != nil {
		return nil, err
	}
	v, err := t.witness.Judge(ctx)
	if err != nil {
		return nil, err
	}
	left, err := t.witness.AtRest(ctx)
	if err != nil {
		return nil, err
	}
	var unwell validate.Findings
	to := t.mode.Writer(t.witness.Client, t.cluster.Names())
	for _, err := range t.witness.StopAtWork(ctx, to, slices.Concat(t.cluster.Publishers, t.cluster.Projectors)...) {
		unwell.Add("%v", err)
	}
	kept, err := t.witness.AtStop(ctx, time.Time{})
	found := slices.Concat(v.Violations, left, kept, []witness.Violation{{Name: "services that did not stop in good order", Findings: unwell}})
	return slices.DeleteFunc(found, func(f witness.Violation) bool { return v.Check(f).Passed }), err
}

// play writes and waits for the end of the backlog, while the witness watches.
func (t *trial) play(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return t.witness.Run(ctx) })
	g.Go(func() error {
		generator := orders.NewGenerator(t.seed, aggregates)
		generator.Erasing = erasing
		l := load.Load{
			To: t.mode.Writer(t.witness.Client, t.cluster.Names()), Rate: rate, Least: trialTime, Wrote: t.witness.Ledger.Wrote,
			Next: load.Limited(events, t.mode.Failing(t.seed, load.Dated(t.seed, load.Laden(t.seed, payload.StorableNames, load.Generated(generator))))),
		}
		if err := l.Run(ctx, nil); err != nil {
			return err
		}
		drain, cancel := pressure.WithTimeout(ctx, drainTime, drainMore)
		defer cancel()
		_ = t.witness.AwaitDrain(drain) // what did not come is among what is found
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return errPlayed
	})
	if err := g.Wait(); !errors.Is(err, errPlayed) {
		return err
	}
	return nil
}
