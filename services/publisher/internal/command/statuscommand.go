package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/stream"
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
	// Halted is why the leader waits for an operator; absent while it does not.
	Halted string `json:"halted,omitempty"`
	// Warnings are what is not as it should be.
	Warnings []string `json:"warnings,omitempty"`
	// LagSeconds is how far the saved checkpoint is behind the source's clock:
	// up to 10 s on an idle stream. Absent when the source does not answer, with
	// the reason in SourceError.
	LagSeconds  *float64          `json:"lag_seconds,omitempty"`
	SourceError string            `json:"source_error,omitempty"`
	Checkpoint  CheckpointView    `json:"checkpoint"`
	Began       *status.BeganView `json:"began,omitempty"`
	// Parked is of the whole stream, whatever partition this is.
	Parked int64 `json:"parked"`
	// Gaps are the latest; those of the whole are shown with the first partition.
	Gaps []mongostate.Gap `json:"gaps,omitempty"`
	// GapCounts are how many gaps there are in all, by decision.
	GapCounts map[string]int64 `json:"gap_counts,omitempty"`
}

// showStatus prints what the databases know of the stream, whichever instance
// leads, and whatever number of partitions it has.
func showStatus(ctx context.Context, call Call) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	now, emptied, sourceErr := askedSource(ctx, call.Config)
	return withState(ctx, call.Config, func(state *mongostate.Database) error {
		c := call.Config
		scope, err := state.Scope(ctx, c.StreamName, c.LeaseName)
		if err != nil {
			return err
		}
		warned, err := warnings(ctx, state, scope, c)
		if err != nil {
			return err
		}
		if emptied != "" {
			warned = append(warned, "the source "+emptied)
		}
		missing, err := stream.MissingParked(ctx, state, c.StreamName)
		if err != nil {
			return err
		}
		short, err := shortResend(ctx, state, c)
		if err != nil {
			return err
		}
		warned = slices.Concat(warned, missing, short, homeMade(ctx, state, scope, c))
		numbers := scope.Partitions()
		if len(numbers) == 0 {
			numbers = []int{c.Partitions}
		}
		for _, partitions := range numbers {
			leases := mongostate.PartitionNames(c.LeaseName, partitions)
			for i, stream := range mongostate.PartitionNames(c.StreamName, partitions) {
				view, err := viewStream(ctx, state, scope, stream, leases[i], state.Ledger(c.StreamName, partitions, i))
				if err != nil {
					return err
				}
				view.Warnings = append(slices.Clone(warned), view.Warnings...)
				if record := scope.Records[stream]; record.Marked {
					view.warn(c.BeganBehind(record.Began, record.Behind))
				}
				view.lagBehind(now, sourceErr)
				if err := printView(call.Stdout, call.JSON, view); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// warnings says what of the whole stream is not as the settings say.
func warnings(ctx context.Context, state *mongostate.Database, scope mongostate.Scope, c config.Config) ([]string, error) {
	err := scope.Check(c.Said())
	if err == nil {
		return nil, nil
	}
	all := []string{err.Error()}
	if len(scope.Partitions()) > 0 {
		return all, nil
	}
	records, err := state.Streams().Of(ctx, "")
	for _, record := range records {
		all = append(all, fmt.Sprintf("the state database %q knows the stream %q", c.StateDatabase, record.Whole))
	}
	return slices.Compact(all), err
}

func viewStream(ctx context.Context, state *mongostate.Database, scope mongostate.Scope, followed, lease string, ledger *mongostate.Gaps) (StreamView, error) {
	view := StreamView{Stream: followed, Lease: lease}
	held, err := state.Lease(lease).Read(ctx)
	if err != nil {
		return view, err
	}
	if held.Live() {
		left := held.Remaining.Seconds()
		view.Leader, view.Incarnation, view.LeaseSeconds = held.Holder.ID, held.Holder.Incarnation, &left
	}
	found, exists, err := stream.ReadCheckpoint(ctx, state, followed)
	if err != nil {
		return view, err
	}
	view.Term, view.Checkpoint = found.Term, viewOf(found, exists)
	record, recorded := scope.Records[followed]
	view.Halted, view.Began = record.Halt, status.ViewBeginning(record.Began)
	view.warn(record.Began.Skipped())
	switch {
	case recorded && record.Confirmed > 0 && !exists:
		view.Warnings = append(view.Warnings, fmt.Sprintf("the checkpoint is missing: it was claimed in term %d before", record.Confirmed))
	case exists && !recorded:
		text, err := unrecorded(ctx, ledger, found)
		if err != nil {
			return view, err
		}
		view.warn(text)
	case exists && found.Term < record.Confirmed:
		view.Warnings = append(view.Warnings, fmt.Sprintf("the checkpoint is of term %d, and was claimed in term %d before", found.Term, record.Confirmed))
	}
	if view.Parked, err = state.Parked(scope.Whole).Count(ctx); err != nil {
		return view, err
	}
	latest, err := ledger.Latest(ctx)
	counts, countErr := ledger.Counts(ctx)
	view.Gaps, view.GapCounts = latest, counts
	if counts[mongostate.Unfinished] > 0 {
		view.Warnings = append(view.Warnings, "a move of the checkpoint was announced in stream_gaps, and not finished: the next leader, or command, finds out whether it was made, and says so there")
	}
	return view, errors.Join(err, countErr)
}

// unrecorded says what becomes of a checkpoint without a record.
func unrecorded(ctx context.Context, ledger *mongostate.Gaps, found checkpoint.Checkpoint) (string, error) {
	err := stream.Adoptable(ctx, ledger, found)
	if halted, ok := errors.AsType[*changestream.HaltError](err); ok {
		return "the stream has no record, and no leader goes on: " + halted.Error(), nil
	}
	return "the stream has no record yet: the next leader makes it from the checkpoint", err
}

// warn adds a warning, unless it is empty.
func (v *StreamView) warn(text string) {
	if text != "" {
		v.Warnings = append(v.Warnings, text)
	}
}

// lagBehind fills in the lag behind the source's time. A checkpoint after it has
// none: nothing is read there.
func (v *StreamView) lagBehind(now time.Time, err error) {
	at := v.Checkpoint.At
	if at == nil {
		at = v.Checkpoint.StartAt
	}
	switch {
	case err != nil:
		v.SourceError = err.Error()
	case at != nil && at.After(now):
		v.Warnings = append(v.Warnings, fmt.Sprintf("the checkpoint is at %s, after the source's clock, %s: nothing is read until then",
			at.Format(time.RFC3339), now.Format(time.RFC3339)))
	case at != nil:
		lag := now.Sub(*at).Seconds()
		v.LagSeconds = &lag
	}
}

// askedSource asks the source for its cluster time, and whether its events are sent
// without a payload. Its error is without secrets.
func askedSource(ctx context.Context, cfg config.Config) (now time.Time, emptied string, err error) {
	client, err := config.ConnectMongo(cfg.MongoURI)
	if err != nil {
		return time.Time{}, "", err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), config.CloseTimeout)
		defer cancel()
		_ = client.Disconnect(closing) // the process ends anyway
	}()
	latest, err := changestream.Latest(ctx, client)
	if err != nil {
		return time.Time{}, "", redacted(cfg, err)
	}
	if emptied, err = cfg.Emptied(ctx, client); err != nil {
		emptied = "does not show its events: " + redacted(cfg, err).Error()
	}
	return latest.Time(), emptied, nil
}
