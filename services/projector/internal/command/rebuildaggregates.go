package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"changerelay/services/projector/internal/cli"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/verify"
)

// mended is a line of projector rebuild --aggregate: a document that was not what the
// source makes of it, and is now, or would be.
type mended struct {
	verify.Verdict
	DryRun bool `json:"dry_run,omitempty"`
}

// rebuiltAggregates is its last line.
type rebuiltAggregates struct {
	Step       string `json:"step"`
	Aggregates int    `json:"aggregates"`
	// Replaced counts documents.
	Replaced int  `json:"replaced"`
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
	done := rebuiltAggregates{Step: "done", Aggregates: len(o.aggregates), DryRun: s.flags.DryRun, NotRebuilt: not}
	run := rand.Text()
	v := verify.New(verify.Config{Run: run, Targets: targets, Partly: o.force}, publishedEvents{o.publisher, o.rate}, s.store.Comparison, func(v verify.Verdict) error {
		if !s.flags.DryRun || v.Mendable() {
			done.Replaced++
		}
		return s.lines.Encode(mended{v, s.flags.DryRun})
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
		err = s.decide(ctx, d, func() error { return v.Mend(ctx, o.aggregates) })
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
