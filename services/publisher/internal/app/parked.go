package app

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
	"changerelay/services/publisher/internal/mongostate"
)

// withState calls work with the state database. Secrets are taken out of the
// error that comes back.
func withState(ctx context.Context, config Config, work func(state *mongostate.Database) error) error {
	client, err := connectWithin(config.StateMongoURI, commandSelectTimeout)
	if err != nil {
		return fmt.Errorf("prepare the state database: %w", err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		_ = client.Disconnect(closing) // the process ends anyway
	}()
	err = work(mongostate.New(client, config.StateDatabase))
	if err == nil || errors.Is(err, cli.ErrUsage) {
		return err
	}
	return redacted(config, err)
}

// redacted is an error without the configuration's secrets.
func redacted(config Config, err error) error {
	return errors.New(config.redactor().Text(err.Error()))
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
		return call.Config.known(ctx, state)
	})
}

// showParked writes one parked change with the change itself.
func showParked(ctx context.Context, call Call, id string) error {
	return withState(ctx, call.Config, func(state *mongostate.Database) error {
		change, err := state.Parked(call.Config.StreamName).Get(ctx, id)
		if errors.Is(err, mongostate.ErrNotParked) {
			return cmp.Or(call.Config.known(ctx, state), err)
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
		if err := call.Config.checked(ctx, state); err != nil {
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
	// Outcome is replayed, discarded or failed.
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
