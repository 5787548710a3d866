package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/cli"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/mongostate"
)

// withState calls work with the state database. Secrets are taken out of the
// error that comes back.
func withState(ctx context.Context, cfg config.Config, work func(state *mongostate.Database) error) error {
	client, err := config.ConnectWithin(cfg.StateMongoURI, config.CommandSelectTimeout)
	if err != nil {
		return fmt.Errorf("prepare the state database: %w", err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), config.CloseTimeout)
		defer cancel()
		_ = client.Disconnect(closing) // the process ends anyway
	}()
	err = work(mongostate.New(client, cfg.StateDatabase))
	if err == nil || errors.Is(err, cli.ErrUsage) {
		return err
	}
	return redacted(cfg, err)
}

// redacted is an error without the configuration's secrets.
func redacted(cfg config.Config, err error) error {
	return errors.New(cfg.Redactor().Text(err.Error()))
}

// listParked writes the stream's parked changes, oldest first, as one JSON
// object a line.
func listParked(ctx context.Context, call Call, all bool) error {
	return withState(ctx, call.Config, func(state *mongostate.Database) error {
		encoder, listed := json.NewEncoder(call.Stdout), false
		err := state.Parked(call.Config.StreamName).Each(ctx, all, func(change mongostate.ParkedChange) error {
			listed = true
			return encoder.Encode(change)
		})
		if err != nil || listed {
			return err
		}
		return call.Config.Known(ctx, state)
	})
}

// showParked writes one parked change with the change itself.
func showParked(ctx context.Context, call Call, id string) error {
	return withState(ctx, call.Config, func(state *mongostate.Database) error {
		change, err := state.Parked(call.Config.StreamName).Get(ctx, id)
		if errors.Is(err, mongostate.ErrNotParked) {
			return cmp.Or(call.Config.Known(ctx, state), err)
		}
		if err != nil {
			return err
		}
		shown := struct {
			mongostate.ParkedChange
			Change json.RawMessage `json:"change,omitempty"`
		}{ParkedChange: change}
		if raw := change.Raw(); raw != nil {
			if shown.Change, err = bson.MarshalExtJSON(bson.Raw(raw), false, false); err != nil {
				return fmt.Errorf("show parked change %s: %w", change.ID, err)
			}
		}
		encoder := json.NewEncoder(call.Stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(shown)
	})
}

// discardParked gives changes up. They stay in the database, marked so.
func discardParked(ctx context.Context, call Call, ids []string) error {
	return withState(ctx, call.Config, func(state *mongostate.Database) error {
		if err := call.Config.Checked(ctx, state); err != nil {
			return err
		}
		parked := state.Parked(call.Config.StreamName)
		report := newReport(call.Stdout)
		for _, id := range ids {
			claimed, err := parked.Claim(ctx, id, call.Config.InstanceID, claimTime)
			if err == nil {
				err = parked.Resolve(ctx, claimed, mongostate.Discarded, "")
			}
			if err != nil && ctx.Err() != nil {
				return err
			}
			report.add(outcome{ID: id, AggregateID: claimed.AggregateID, EventID: claimed.EventID}, string(mongostate.Discarded), err)
		}
		return report.err()
	})
}

// claimTime is how long one operator has a parked change to himself.
const claimTime = time.Minute

// outcome is what became of one parked change, as a command says it.
type outcome struct {
	ID          string `json:"id"`
	AggregateID string `json:"aggregate_id,omitempty"`
	EventID     string `json:"event_id,omitempty"`
	// Outcome is replayed, discarded, parked or failed.
	Outcome string `json:"outcome"`
	Error   string `json:"error,omitempty"`
}

// report writes outcomes, one JSON object a line.
type report struct {
	to     *json.Encoder
	failed int
	broken error // of writing
}

func newReport(to io.Writer) *report { return &report{to: json.NewEncoder(to)} }

func (r *report) add(o outcome, done string, err error) {
	o.Outcome = done
	if err != nil {
		r.failed++
		o.Outcome, o.Error = "failed", err.Error()
	}
	r.broken = errors.Join(r.broken, r.to.Encode(o))
}

// err is nil when everything worked.
func (r *report) err() error {
	if r.broken != nil {
		return r.broken
	}
	if r.failed > 0 {
		return fmt.Errorf("%d of the changes failed, see the output", r.failed)
	}
	return nil
}

// reopenParked parks changes again that were replayed since a time.
func reopenParked(ctx context.Context, call Call, since time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	return withState(ctx, call.Config, func(state *mongostate.Database) error {
		if err := call.Config.Checked(ctx, state); err != nil {
			return err
		}
		report := newReport(call.Stdout)
		err := state.Parked(call.Config.StreamName).Reopen(ctx, since, cli.Operator(), func(change mongostate.ParkedChange) {
			report.add(outcome{ID: change.ID, AggregateID: change.AggregateID, EventID: change.EventID}, mongostate.ParkedAgain, nil)
		})
		return cmp.Or(err, report.err())
	})
}

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
		err := call.Config.Checked(ctx, state)
		if err != nil {
			return err
		}
		if view.Purged, err = state.Parked(view.Stream).Purge(ctx, view.Before, cli.Operator(), dry); err != nil {
			return err
		}
		return printView(call.Stdout, call.JSON, view)
	})
}
