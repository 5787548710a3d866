package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"changerelay/services/e2e/internal/harness/load"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/payload"
)

// errPlayed ends the watchers when there is nothing more to watch.
var errPlayed = errors.New("played")

// play writes, injects faults and waits for the end of the backlog, while the
// watchers watch and the board shows.
func (d *Demo) play(ctx context.Context) error {
	d.nemesis = &nemesis{
		cluster: d.cluster, witness: d.witness,
		rng: rand.New(rand.NewPCG(d.cfg.Seed, 0x6661756c7473)), planned: d.cfg.planned(), slack: d.cfg.slack(), began: time.Now(),
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.witness.Run(ctx) })
	g.Go(func() error { return d.board().run(ctx) })
	g.Go(func() error {
		if err := d.act(ctx); err != nil {
			return err
		}
		return errPlayed
	})
	if err := g.Wait(); !errors.Is(err, errPlayed) {
		return err
	}
	return nil
}

// act writes beside the faults, and then waits for the drain.
func (d *Demo) act(ctx context.Context) error {
	enough := make(chan struct{})
	g, ctx2 := errgroup.WithContext(ctx)
	g.Go(func() error {
		began := time.Now()
		defer func() { d.wroteFor = time.Since(began) }()
		return d.load().Run(ctx2, enough)
	})
	g.Go(func() error {
		defer close(enough)
		if !d.faults() {
			return nil
		}
		return d.nemesis.run(ctx2)
	})
	if err := g.Wait(); err != nil {
		return err
	}
	return d.drain(ctx)
}

// faults says whether there are any: a file that is written in less time than a
// failover takes leaves none to measure.
func (d *Demo) faults() bool { return d.cfg.Faults && d.tooShort() == "" }

func (d *Demo) tooShort() string {
	takes := time.Duration(float64(d.cfg.planned()) / float64(d.cfg.Rate) * float64(time.Second))
	if need := 3 * d.cfg.Lease; d.cfg.Input != "" && takes < need {
		return fmt.Sprintf("none: %d events are written in %.1f s, and failovers need %v to show; lower --rate", d.cfg.planned(), takes.Seconds(), need)
	}
	return ""
}

func (d *Demo) load() *load.Load {
	l := &load.Load{To: d.writer, Rate: d.cfg.Rate, Least: d.cfg.Duration, Wrote: d.witness.Ledger.Wrote}
	if d.cfg.Input != "" {
		// A file has its own end.
		l.Next, l.Least = load.Listed(d.cfg.log.Events), d.cfg.Timeout
		return l
	}
	l.Next = load.Dated(d.cfg.Seed, load.Laden(d.cfg.Seed, payload.AnyName, load.Generated(orders.NewGenerator(d.cfg.Seed, d.cfg.Aggregates))))
	return l
}

// drain waits for the end of the backlog. That it does not come is for the judge
// to say, with numbers.
func (d *Demo) drain(ctx context.Context) error {
	began := time.Now()
	wait, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	if d.cfg.Input == "" {
		d.drained = d.witness.AwaitDrain(wait)
	} else {
		d.drained = d.witness.AwaitSettled(wait)
	}
	d.drainedIn = time.Since(began)
	return context.Cause(ctx)
}

// drainTimeout bounds the drain: longer than a lock of a killed projector lives.
const drainTimeout = 60 * time.Second
