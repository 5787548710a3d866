package traffic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/load"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/payload"
	"changerelay/services/e2e/internal/harness/poll"
	"changerelay/services/e2e/internal/harness/source"
)

// ErrFaults is returned by Check when something is wrong with the system.
var ErrFaults = errors.New("faults were found")

// errChecked ends the watching when there is nothing more to watch.
var errChecked = errors.New("checked")

// Check writes to a fresh system, waits until everything has arrived, and prints
// what the validators found. The error is ErrFaults, or why it could not be told.
func Check(ctx context.Context, cfg Config, out io.Writer) error {
	names := cluster.DefaultNames()
	w, err := witness.Open(ctx, cluster.Endpoints{MongoURI: cfg.MongoURI, ServiceBus: cfg.ServiceBus}, names, witness.Orders)
	if err != nil {
		return err
	}
	defer w.Close(ctx)
	c := check{cfg: cfg, names: names, witness: w, out: out}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.Run(ctx) })
	g.Go(func() error {
		if err := c.run(ctx); err != nil {
			return err
		}
		return errChecked
	})
	if err := g.Wait(); !errors.Is(err, errChecked) {
		return err
	}
	return nil
}

// check is one run of Check.
type check struct {
	cfg     Config
	names   cluster.Names
	witness *witness.Witness
	out     io.Writer
}

func (c *check) run(ctx context.Context) error {
	if err := c.ready(ctx); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "writing %d events a second for %v\n", c.cfg.Rate, c.cfg.Duration)
	if err := c.write(ctx); err != nil {
		return err
	}
	return errors.Join(c.drain(ctx), c.judge(ctx))
}

// ready refuses a source with events that were not watched, and waits until the
// publishers have pinned where they start: what is written before is not theirs.
func (c *check) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	events := c.witness.Client.Database(c.names.SourceDatabase).Collection(c.names.SourceCollection)
	before, err := events.CountDocuments(ctx, bson.D{})
	if err != nil {
		return fmt.Errorf("count the events in %s: %w", events.Name(), err)
	}
	if before > 0 {
		return fmt.Errorf("the source has %d events already: only a fresh system can be judged", before)
	}
	checkpoints := c.witness.State().Collection("resume_tokens")
	pinned := bson.D{{Key: "$or", Value: bson.A{
		bson.D{{Key: "startAt", Value: bson.D{{Key: "$exists", Value: true}}}},
		bson.D{{Key: "token", Value: bson.D{{Key: "$exists", Value: true}}}},
	}}}
	return poll.Until(ctx, "a publisher to lead", func(ctx context.Context) (bool, string) {
		n, err := checkpoints.CountDocuments(ctx, pinned)
		return n > 0, fmt.Sprintf("%d checkpoints, error %v", n, err)
	})
}

func (c *check) write(ctx context.Context) error {
	enough := make(chan struct{})
	close(enough)
	l := load.Load{
		To:   source.NewWriter(c.witness.Client, c.names.SourceDatabase, c.names.SourceCollection),
		Rate: c.cfg.Rate, Least: c.cfg.Duration,
		Next:  load.Laden(c.cfg.Seed, payload.AnyName, load.Generated(orders.NewGenerator(c.cfg.Seed, c.cfg.Aggregates))),
		Wrote: c.witness.Ledger.Wrote,
	}
	return l.Run(ctx, enough)
}

func (c *check) drain(ctx context.Context) error {
	began := time.Now()
	wait, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	if err := c.witness.AwaitDrain(wait); err != nil {
		return fmt.Errorf("%w: %w", ErrFaults, err)
	}
	fmt.Fprintf(c.out, "all is in the read model %.1f s after the last write\n", time.Since(began).Seconds())
	return nil
}

// judge looks at all that was seen, and at what is left behind.
func (c *check) judge(ctx context.Context) error {
	v, err := c.witness.Judge(ctx)
	if err != nil {
		return err
	}
	left, err := c.witness.AtRest(ctx)
	if err != nil {
		return err
	}
	return c.tell(v, left)
}

// tell prints what was found, and returns ErrFaults where that is anything, or where there
// was nothing to be found in.
func (c *check) tell(v witness.Verdict, left []witness.Violation) error {
	terms := map[int64]bool{}
	for _, send := range v.Sends {
		terms[send.Term] = true
	}
	fmt.Fprintf(c.out, "%d events written, %d messages on the topic from %d terms, %d events applied\n", v.Events.Len(), len(v.Sends), len(terms), v.Applied)
	passed := v.Events.Len() > 0
	for _, f := range slices.Concat(v.Violations, left) {
		judged := v.Check(f)
		passed = passed && judged.Passed
		fmt.Fprintf(c.out, "%8d %s\n", f.Count, f.Name)
		for _, sample := range f.Samples {
			fmt.Fprintf(c.out, "         %s\n", sample)
		}
		if judged.Unchecked != "" {
			fmt.Fprintf(c.out, "         it cannot be judged: %s\n", judged.Unchecked)
		}
	}
	if !passed {
		return ErrFaults
	}
	return nil
}
