package command

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/cli"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/verify"
)

// mended is a line of projector rebuild --aggregate: a document that was not what the
// source makes of it, and is now, or would be.
type mended struct {
	verify.Verdict
	DryRun bool `json:"dry_run,omitempty"`
	// Was is the document that went, where it may have been the better one.
	Was json.RawMessage `json:"was,omitempty"`
}

// rebuiltAggregates is its last line.
type rebuiltAggregates struct {
	Step       string `json:"step"`
	Aggregates int    `json:"aggregates"`
	// Replaced counts documents, Mended the records of skipped events that they have now.
	Replaced int  `json:"replaced"`
	Mended   int  `json:"skipped_mended,omitempty"`
	DryRun   bool `json:"dry_run,omitempty"`
	// NotRebuilt are projections whose documents cannot be, with the reasons.
	NotRebuilt map[string]string `json:"not_rebuilt,omitempty"`
}

// rebuildAggregates puts what the source makes in the place of aggregates' documents
// that differ.
func (s *scope) rebuildAggregates(ctx context.Context, o rebuildOptions) error {
	if o.why == "" && !s.flags.DryRun {
		return cli.Usagef("rebuild --aggregate: say why, with --why TEXT: it is kept in the ledger")
	}
	var names []string
	if o.name != "" {
		names = []string{o.name}
	}
	targets, not, err := s.targets(ctx, names)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		return cli.Usagef("the documents of no projection are single aggregates': %s", reasons(not))
	}
	var beside []verify.Target // none where all are targets
	if o.name != "" {
		if beside, err = s.beside(ctx, targets); err != nil {
			return err
		}
	}
	done := rebuiltAggregates{Step: "done", Aggregates: len(o.aggregates), DryRun: s.flags.DryRun, NotRebuilt: not}
	run := rand.Text()
	v := verify.New(verify.Config{Run: run, Targets: slices.Concat(targets, beside), Partly: o.force}, publishedEvents{o.publisher, o.rate}, s.store.Comparison, func(v verify.Verdict) error {
		if !s.flags.DryRun || v.Mendable() {
			done.Replaced++
		}
		line := mended{Verdict: v, DryRun: s.flags.DryRun}
		if was := v.Replaced(); v.Partly != "" && was != nil {
			text, err := bson.MarshalExtJSON(was, false, false)
			if err != nil {
				return fmt.Errorf("print the document of %q in %q: %w", v.Aggregate, v.Collection, err)
			}
			line.Was = text
		}
		return s.lines.Encode(line)
	})
	if s.flags.DryRun {
		_, err = v.Verify(ctx, verify.Selection{Aggregates: o.aggregates})
	} else {
		d := &readmodel.Decision{Command: "rebuild --aggregate", Why: []string{o.why}}
		if o.force {
			d.Command += " --force"
		}
		for _, aggregate := range o.aggregates {
			d.Add(readmodel.Named{Aggregate: aggregate})
		}
		err = s.decide(ctx, d, func() (err error) {
			done.Mended, err = s.mend(ctx, v, o, targets)
			return err
		})
	}
	switch {
	case errors.Is(err, verify.ErrPartly):
		err = fmt.Errorf("%w; the document may be all there is, and --force replaces it, or removes it", err)
	case errors.Is(err, verify.ErrHalted):
		err = fmt.Errorf("%w: redrive or discard it, or mend the projection, first; with --force what is parked may never be redriven, but with --accept-lost", err)
	}
	if err = errors.Join(err, s.forgetRecomputed(ctx, run), s.undisturbed(ctx)); err != nil {
		return err
	}
	return s.lines.Encode(done)
}

// beside are the other projections' documents of the same aggregates. What one of them
// cannot apply would halt an aggregate of which the mended documents are beyond that: its
// redrive would be refused.
func (s *scope) beside(ctx context.Context, targets []verify.Target) (others []verify.Target, err error) {
	all, _, err := s.targets(ctx, nil)
	for _, t := range all {
		if !slices.ContainsFunc(targets, func(mended verify.Target) bool { return mended.Name == t.Name }) {
			t.Beside = true
			others = append(others, t)
		}
	}
	return others, err
}

// mend mends documents, and removes the records of those skipped events that there were
// before: the documents have them now, or it fails. Where it is forced it may go without an
// event, so they stay.
func (s *scope) mend(ctx context.Context, v *verify.Run, o rebuildOptions, targets []verify.Target) (int, error) {
	if o.force {
		return 0, v.Mend(ctx, o.aggregates)
	}
	accounts := map[string]bool{}
	for i := range targets {
		accounts[targets[i].Projection.Name()] = true
	}
	before, err := s.skippedBefore(ctx, o.aggregates, accounts)
	if err != nil {
		return 0, err
	}
	if err := v.Mend(ctx, o.aggregates); err != nil {
		return 0, err
	}
	return s.forgetSkipped(ctx, before)
}
