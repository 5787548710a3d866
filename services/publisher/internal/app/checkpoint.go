package app

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/mongostate"
)

// commandTimeout bounds what a command asks of the databases.
const commandTimeout = 30 * time.Second

// moveFlags are the arguments of a command that moves checkpoints.
type moveFlags struct {
	why, who string
	force    bool
	rest     []string
}

func parseMove(name string, args []string) (moveFlags, error) {
	var m moveFlags
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&m.why, "why", "", "")
	flags.StringVar(&m.who, "who", operator(), "")
	flags.BoolVar(&m.force, "force", false, "")
	for {
		if err := flags.Parse(args); err != nil {
			return m, fmt.Errorf("%s: %w: %w", name, err, ErrUsage)
		}
		if flags.NArg() == 0 {
			break
		}
		m.rest, args = append(m.rest, flags.Arg(0)), flags.Args()[1:]
	}
	if m.why == "" {
		return m, fmt.Errorf("%s: say why, with --why TEXT: it is kept in checkpoint_log: %w", name, ErrUsage)
	}
	return m, nil
}

// operator is who runs the command, as far as the system knows.
func operator() string {
	name := "unknown"
	if current, err := user.Current(); err == nil {
		name = current.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}

// setCheckpoint moves the stream's checkpoints to a time or a position.
func setCheckpoint(ctx context.Context, call Call) error {
	m, err := parseMove("checkpoint set", call.Args)
	if err != nil {
		return err
	}
	if len(m.rest) != 1 {
		return fmt.Errorf("checkpoint set takes one place, an RFC 3339 time or a position as checkpoint show prints it: %w", ErrUsage)
	}
	place, err := parsePlace(m.rest[0])
	if err != nil {
		return fmt.Errorf("checkpoint set: %q is neither an RFC 3339 time nor a position: %w: %w", m.rest[0], err, ErrUsage)
	}
	return moveCheckpoints(ctx, call, "set", m, place)
}

// resetCheckpoint forgets where the stream's checkpoints are: START_AT decides.
func resetCheckpoint(ctx context.Context, call Call) error {
	m, err := parseMove("checkpoint reset", call.Args)
	if err != nil {
		return err
	}
	if len(m.rest) != 0 {
		return fmt.Errorf("checkpoint reset takes no place, not %q: %w", m.rest, ErrUsage)
	}
	return moveCheckpoints(ctx, call, "reset", m, checkpoint.Place{})
}

func parsePlace(text string) (checkpoint.Place, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return checkpoint.Place{Start: checkpoint.ClusterTime{Seconds: uint32(at.Unix())}}, nil
	}
	position := contract.Position(text)
	if _, _, err := position.ClusterTime(); err != nil {
		return checkpoint.Place{}, err
	}
	_, data, _ := strings.Cut(text, ".")
	token, err := bson.Marshal(bson.D{{Key: "_data", Value: data}})
	return checkpoint.Place{Token: token, Position: position}, err
}

// moveCheckpoints moves all of the stream's checkpoints. It refuses while a
// lease is live, unless it is told to go on by the term alone.
func moveCheckpoints(ctx context.Context, call Call, action string, m moveFlags, place checkpoint.Place) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	return withState(ctx, call.Config, func(state *mongostate.Database) error {
		for _, name := range mongostate.PartitionNames(call.Config.LeaseName, call.Config.Partitions) {
			record, err := state.Lease(name).Read(ctx)
			if err != nil {
				return fmt.Errorf("read lease %q: %w", name, err)
			}
			if record.Live() && !m.force {
				return fmt.Errorf("lease %q is held by %q: stop the publishers first; or give --force, and the leader goes on from the new place", name, record.Holder.ID)
			}
		}
		encoder := json.NewEncoder(call.Stdout)
		for _, stream := range mongostate.PartitionNames(call.Config.StreamName, call.Config.Partitions) {
			move := mongostate.Move{Stream: stream, Action: action, Who: m.who, Why: m.why, Forced: m.force, At: time.Now()}
			before, err := state.MoveCheckpoint(ctx, move, place, place.Token != nil)
			if err != nil {
				return err
			}
			after := before
			after.Place = place
			if err := encoder.Encode(map[string]any{"before": viewOf(before), "after": viewOf(after)}); err != nil {
				return err
			}
		}
		return nil
	})
}

// CheckpointView is a checkpoint as commands print it.
type CheckpointView struct {
	Stream string `json:"stream"`
	Exists bool   `json:"exists"`
	Term   int64  `json:"term"`
	// Position is that of the token; absent while there is none.
	Position string `json:"position,omitempty"`
	// At is the time, by the source's cluster, up to which all is published.
	At *time.Time `json:"at,omitempty"`
	// StartAt is where the stream begins while there is no token.
	StartAt   *time.Time  `json:"start_at,omitempty"`
	Copy      *CopyStatus `json:"copy,omitempty"`
	Options   string      `json:"options,omitempty"`
	UpdatedAt *time.Time  `json:"updated_at,omitempty"`
}

func viewOf(c checkpoint.Checkpoint) CheckpointView {
	view := CheckpointView{
		Stream: c.Stream, Exists: c.Term > 0, Term: c.Term, Position: string(c.Position),
		Options: c.Options, UpdatedAt: known(c.UpdatedAt),
	}
	if seconds, _, err := c.Position.ClusterTime(); err == nil {
		view.At = known(time.Unix(int64(seconds), 0))
	}
	if !c.Start.IsZero() {
		view.StartAt = known(c.Start.Time())
	}
	if c.Copying() {
		view.Copy = &CopyStatus{Cause: c.Copy.Cause, BeganAt: c.Copy.BeganAt, Copied: c.Copy.Copied, Total: c.Copy.Total}
	}
	return view
}

// showCheckpoint prints the stream's checkpoints.
func showCheckpoint(ctx context.Context, call Call) error {
	asJSON, err := onlyJSON("checkpoint show", call.Args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	return withState(ctx, call.Config, func(state *mongostate.Database) error {
		for _, stream := range mongostate.PartitionNames(call.Config.StreamName, call.Config.Partitions) {
			found, err := readCheckpoint(ctx, state, stream)
			if err != nil {
				return err
			}
			if err := printView(call.Stdout, asJSON, viewOf(found)); err != nil {
				return err
			}
		}
		return nil
	})
}

// readCheckpoint returns a checkpoint of term 0 where there is none.
func readCheckpoint(ctx context.Context, state *mongostate.Database, stream string) (checkpoint.Checkpoint, error) {
	found, err := state.Checkpoints().Read(ctx, stream)
	if errors.Is(err, mongostate.ErrNone) {
		return checkpoint.Checkpoint{Stream: stream}, nil
	}
	if err != nil {
		return found, fmt.Errorf("read checkpoint %q: %w", stream, err)
	}
	return found, nil
}

func onlyJSON(name string, args []string) (bool, error) {
	switch {
	case len(args) == 0:
		return false, nil
	case len(args) == 1 && args[0] == "--json":
		return true, nil
	default:
		return false, fmt.Errorf("%s takes nothing but --json, not %q: %w", name, args, ErrUsage)
	}
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
