package command

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/stream"
)

// commandTimeout bounds what a command asks of the databases.
const commandTimeout = 30 * time.Second

// CheckpointView is a checkpoint as commands print it.
type CheckpointView struct {
	Stream string `json:"stream"`
	Exists bool   `json:"exists"`
	Term   int64  `json:"term"`
	// Position is that of the token; absent while there is none.
	Position string `json:"position,omitempty"`
	// Token says that there is a resume token.
	Token bool `json:"token"`
	// Anew says that START_AT decides where to begin.
	Anew bool `json:"anew,omitempty"`
	// Retired says that the stream has other checkpoints now.
	Retired bool `json:"retired,omitempty"`
	// At is the time, by the source's cluster, up to which all is published.
	At *time.Time `json:"at,omitempty"`
	// StartAt is where the stream begins while there is no token.
	StartAt   *time.Time         `json:"start_at,omitempty"`
	Copy      *status.CopyStatus `json:"copy,omitempty"`
	Options   string             `json:"options,omitempty"`
	UpdatedAt *time.Time         `json:"updated_at,omitempty"`
}

// viewOf shows a checkpoint. One that was made by hand, or by another program,
// may have a token and nothing else.
func viewOf(c checkpoint.Checkpoint, exists bool) CheckpointView {
	if c.Position == "" && c.Token != nil {
		c.Position = changestream.PositionOf(c.Token)
	}
	view := CheckpointView{
		Stream: c.Stream, Exists: exists, Term: c.Term, Position: string(c.Position), Token: c.Token != nil,
		Anew: c.Anew, Retired: c.Retired, Options: c.Options, UpdatedAt: status.KnownTime(c.UpdatedAt),
	}
	if seconds, _, err := c.Position.ClusterTime(); err == nil {
		view.At = status.KnownTime(time.Unix(int64(seconds), 0))
	}
	if !c.Start.IsZero() {
		view.StartAt = status.KnownTime(c.Start.Time())
	}
	if c.Copying() {
		view.Copy = &status.CopyStatus{Cause: c.Copy.Cause, BeganAt: c.Copy.BeganAt, Copied: c.Copy.Copied, Total: c.Copy.Total}
	}
	return view
}

// showCheckpoint prints the stream's checkpoints, of whatever number of
// partitions they are.
func showCheckpoint(ctx context.Context, call Call) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	return withState(ctx, call.Config, func(state *mongostate.Database) error {
		scope, err := state.Scope(ctx, call.Config.StreamName, call.Config.LeaseName)
		if err != nil {
			return err
		}
		names := scope.Names()
		if len(names) == 0 {
			names = mongostate.PartitionNames(call.Config.StreamName, call.Config.Partitions)
		}
		for _, followed := range names {
			found, exists, err := stream.ReadCheckpoint(ctx, state, followed)
			if err != nil {
				return err
			}
			if err := printView(call.Stdout, call.JSON, viewOf(found, exists)); err != nil {
				return err
			}
		}
		return scope.Known()
	})
}

// printView prints what a command has found: as one line of JSON, or with a line
// for each field.
func printView(to io.Writer, asJSON bool, view any) error {
	encoder := json.NewEncoder(to)
	if !asJSON {
		encoder.SetIndent("", "  ")
	}
	return encoder.Encode(view)
}
