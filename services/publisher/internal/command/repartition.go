package command

import (
	"context"
	"fmt"

	"changerelay/services/publisher/internal/cli"
	"changerelay/services/publisher/internal/mongostate"
)

// repartition carries the checkpoints over to the configured number of
// partitions.
func repartition(ctx context.Context, call Call, from int, dry bool) error {
	r := mongostate.Repartition{
		Stream: call.Config.StreamName, From: from, Lease: call.Config.LeaseName, To: call.Config.Partitions, By: cli.Operator(), Settings: call.Config.Identity(),
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	now, err := sourceClock(ctx, call.Config)
	if err != nil {
		return redacted(call.Config, fmt.Errorf("repartition %q: %w", r.Stream, err))
	}
	r.Now = now
	return withState(ctx, call.Config, func(state *mongostate.Database) error {
		carried, err := state.Repartition(ctx, r, dry)
		if err != nil {
			return fmt.Errorf("repartition %q: %w", r.Stream, err)
		}
		return printView(call.Stdout, call.JSON, struct {
			mongostate.Carried
			DryRun bool `json:"dry_run,omitempty"`
		}{carried, dry})
	})
}
