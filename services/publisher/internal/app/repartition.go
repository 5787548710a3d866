package app

import (
	"context"
	"flag"
	"fmt"
	"io"

	"changerelay/services/publisher/internal/mongostate"
)

// repartition carries the checkpoints over to the configured number of
// partitions.
func repartition(ctx context.Context, call Call) error {
	r := mongostate.Repartition{
		Stream: call.Config.StreamName, Lease: call.Config.LeaseName, To: call.Config.Partitions, By: operator(), Settings: call.Config.identity(),
	}
	var dry, asJSON bool
	flags := flag.NewFlagSet("repartition", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.IntVar(&r.From, "from", 0, "")
	flags.BoolVar(&dry, "dry-run", false, "")
	flags.BoolVar(&asJSON, "json", false, "")
	if err := flags.Parse(call.Args); err != nil {
		return fmt.Errorf("repartition: %w: %w", err, ErrUsage)
	}
	if flags.NArg() > 0 || r.From < 0 {
		return fmt.Errorf("repartition takes no arguments but --from N, --dry-run and --json, not %q: %w", call.Args, ErrUsage)
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	return withState(ctx, call.Config, func(state *mongostate.Database) error {
		carried, err := state.Repartition(ctx, r, dry)
		if err != nil {
			return fmt.Errorf("repartition %q: %w", r.Stream, err)
		}
		return printView(call.Stdout, asJSON, struct {
			mongostate.Carried
			DryRun bool `json:"dry_run,omitempty"`
		}{carried, dry})
	})
}
