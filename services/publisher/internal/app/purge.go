package app

import (
	"context"
	"time"

	"changerelay/services/publisher/internal/mongostate"
)

// PurgeView is what publisher parked purge prints.
type PurgeView struct {
	Stream string `json:"stream"`
	// Before is the time before which changes were dealt with that are removed.
	Before time.Time `json:"before"`
	DryRun bool      `json:"dry_run"`
	// Purged is how many were removed, or would be.
	Purged int64 `json:"purged"`
}

// purgeParked removes changes that were replayed or discarded long ago. What is
// still parked stays, and what was discarded is in the ledger first.
func purgeParked(ctx context.Context, call Call, age time.Duration, dry bool) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	view := PurgeView{Stream: call.Config.StreamName, Before: time.Now().Add(-age).UTC().Truncate(time.Second), DryRun: dry}
	return withState(ctx, call.Config, func(state *mongostate.Database) error {
		err := call.Config.checked(ctx, state)
		if err != nil {
			return err
		}
		if view.Purged, err = state.Parked(view.Stream).Purge(ctx, view.Before, operator(), dry); err != nil {
			return err
		}
		return printView(call.Stdout, call.JSON, view)
	})
}
