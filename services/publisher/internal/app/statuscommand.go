package app

import (
	"context"
	"time"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/mongostate"
)

// StreamView is what publisher status prints of a stream, or of one partition.
type StreamView struct {
	Stream string `json:"stream"`
	Lease  string `json:"lease"`
	// Leader is who holds the lease; absent when nobody does.
	Leader       string   `json:"leader,omitempty"`
	Incarnation  string   `json:"incarnation,omitempty"`
	LeaseSeconds *float64 `json:"lease_seconds_left,omitempty"`
	Term         int64    `json:"term"`
	// LagSeconds is how far the saved checkpoint is behind the source's clock:
	// up to 10 s on an idle stream. Absent when the source does not answer, with
	// the reason in SourceError.
	LagSeconds  *float64         `json:"lag_seconds,omitempty"`
	SourceError string           `json:"source_error,omitempty"`
	Checkpoint  CheckpointView   `json:"checkpoint"`
	Parked      int64            `json:"parked"`
	Gaps        []mongostate.Gap `json:"gaps,omitempty"`
}

// showStatus prints what the databases know of the stream, whichever instance
// leads.
func showStatus(ctx context.Context, call Call) error {
	asJSON, err := onlyJSON("status", call.Args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	now, sourceErr := sourceTime(ctx, call.Config)
	return withState(ctx, call.Config, func(state *mongostate.Database) error {
		leases := mongostate.PartitionNames(call.Config.LeaseName, call.Config.Partitions)
		for i, stream := range mongostate.PartitionNames(call.Config.StreamName, call.Config.Partitions) {
			view, err := viewStream(ctx, state, stream, leases[i], call.Config.StreamName)
			if err != nil {
				return err
			}
			view.lagBehind(now, sourceErr)
			if err := printView(call.Stdout, asJSON, view); err != nil {
				return err
			}
		}
		return nil
	})
}

func viewStream(ctx context.Context, state *mongostate.Database, stream, lease, parkedAs string) (StreamView, error) {
	view := StreamView{Stream: stream, Lease: lease}
	record, err := state.Lease(lease).Read(ctx)
	if err != nil {
		return view, err
	}
	if record.Live() {
		left := record.Remaining.Seconds()
		view.Leader, view.Incarnation, view.LeaseSeconds = record.Holder.ID, record.Holder.Incarnation, &left
	}
	found, err := readCheckpoint(ctx, state, stream)
	if err != nil {
		return view, err
	}
	view.Term, view.Checkpoint = found.Term, viewOf(found)
	if view.Parked, err = state.Parked(parkedAs).Count(ctx); err != nil {
		return view, err
	}
	view.Gaps, err = state.Gaps(stream).Latest(ctx)
	return view, err
}

// lagBehind fills in the lag behind the source's time.
func (v *StreamView) lagBehind(now time.Time, err error) {
	at := v.Checkpoint.At
	if at == nil {
		at = v.Checkpoint.StartAt
	}
	switch {
	case err != nil:
		v.SourceError = err.Error()
	case at != nil:
		lag := max(now.Sub(*at).Seconds(), 0)
		v.LagSeconds = &lag
	}
}

// sourceTime asks the source for its cluster time. Its error is without secrets.
func sourceTime(ctx context.Context, config Config) (time.Time, error) {
	client, err := connectMongo(config.MongoURI)
	if err != nil {
		return time.Time{}, err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		_ = client.Disconnect(closing) // the process ends anyway
	}()
	now, err := changestream.Now(ctx, client)
	if err != nil {
		return time.Time{}, redacted(config, err)
	}
	return now.Time(), nil
}
