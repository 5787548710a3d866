package app

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/settings"
)

// How far a version may be behind the live one when it is asked to take over:
// what it lacks at that moment it must have reached in a time that --wait sets.
const (
	maxBehind   = 1000
	defaultLook = 10 * time.Second
)

// errNotSwitched makes a switch's exit status tell that it was refused.
var errNotSwitched = errors.New("not switched")

// versioning is a command's way to the versions of projections.
type versioning struct {
	store    *readmodel.Store
	declared []projection.Version
	lines    *json.Encoder
}

// onVersions runs a command on the versions that PROJECTIONS declares.
func onVersions(ctx context.Context, stdout, stderr io.Writer, command func(ctx context.Context, v *versioning) error) error {
	var cfg readConfig
	projections, err := cfg.load()
	if err != nil {
		settings.Report(stderr, "projector", err)
		return ErrUsage
	}
	v := &versioning{lines: json.NewEncoder(stdout)}
	for _, p := range projections {
		if version, is := projection.VersionOf(p); is {
			v.declared = append(v.declared, version)
		}
	}
	return onReadDatabase(ctx, cfg.service(), projections, func(store *readmodel.Store) error {
		v.store = store
		return command(ctx, v)
	})
}

// list prints every version that the database has of the projections declared.
func (v *versioning) list(ctx context.Context) error {
	for i := range v.declared {
		states, err := v.store.Versions(ctx, &v.declared[i])
		if err != nil {
			return err
		}
		for _, state := range states {
			if err := v.lines.Encode(state); err != nil {
				return err
			}
		}
	}
	return nil
}

// switched is what became of a switch.
type switched struct {
	Projection string `json:"projection"`
	View       string `json:"view"`
	// From and To are versions; From is 0 where readers saw none.
	From     int  `json:"from"`
	To       int  `json:"to"`
	Switched bool `json:"switched"`
	// Refused says what speaks against it; with --force it was done all the same.
	Refused []string `json:"refused,omitempty"`
}

// change has readers see the version of a projection that PROJECTIONS declares,
// once it has all that the live one has.
func (v *versioning) change(ctx context.Context, o switchOptions) error {
	version, err := v.find(o.name, o.to)
	if err != nil {
		return err
	}
	from, err := v.store.Live(ctx, version)
	if errors.Is(err, readmodel.ErrNotAView) {
		return fmt.Errorf("%w: stop its projectors, rename it to %q, run projector setup with version 1 declared, and start them so", err, version.Other(1).Collection())
	}
	if err != nil {
		return err
	}
	done := switched{Projection: o.name, View: version.View, From: from, To: o.to}
	if done.Refused, err = v.against(ctx, version, from, o.wait); err != nil {
		return err
	}
	if len(done.Refused) == 0 || o.force {
		err = v.store.Present(ctx, version)
		if err == nil {
			err = v.store.Stand(ctx, version)
		}
		if err != nil {
			return err
		}
		done.Switched = true
	}
	if err := v.lines.Encode(done); err != nil {
		return err
	}
	if !done.Switched {
		return errNotSwitched
	}
	return nil
}

// find is the declared version of a projection, if it is that one.
func (v *versioning) find(name string, number int) (*projection.Version, error) {
	for i := range v.declared {
		switch declared := &v.declared[i]; {
		case declared.Projection != name:
		case declared.Number != number:
			return nil, fmt.Errorf("PROJECTIONS declares version %d of projection %q: run the command with the environment of the projectors of version %d", declared.Number, name, number)
		default:
			return declared, nil
		}
	}
	return nil, fmt.Errorf("PROJECTIONS declares no version of projection %q", name)
}

// against is what speaks against readers seeing a version instead of another.
func (v *versioning) against(ctx context.Context, version *projection.Version, from int, wait time.Duration) ([]string, error) {
	var reasons []string
	halted, err := v.store.CountHalted(ctx)
	if err != nil {
		return nil, err
	}
	if halted > 0 {
		reasons = append(reasons, fmt.Sprintf("%d aggregates are halted: see projector parked list", halted))
	}
	if from == 0 || from == version.Number {
		return reasons, nil
	}
	behind, err := v.store.Behind(ctx, version, version.Other(from), maxBehind+1)
	if err != nil {
		return nil, err
	}
	if len(behind) > maxBehind {
		return append(reasons, fmt.Sprintf("version %d is behind version %d in more than %d aggregates", version.Number, from, maxBehind)), nil
	}
	left, err := v.store.Await(ctx, version, behind, wait)
	if err != nil {
		return nil, err
	}
	if len(left) > 0 {
		reasons = append(reasons, fmt.Sprintf("version %d does not have within %s what version %d had of %d aggregates", version.Number, wait, from, len(left)))
	}
	return reasons, nil
}

// switchOptions are the arguments of projector switch.
type switchOptions struct {
	name  string
	to    int
	force bool
	wait  time.Duration
}

// parseSwitch reads NAME --to VERSION [--wait TIME] [--force]; false where they
// are something else.
func parseSwitch(args []string) (o switchOptions, ok bool) {
	if len(args) == 0 || args[0] == "" {
		return o, false
	}
	o.name = args[0]
	flags := flag.NewFlagSet("switch", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.IntVar(&o.to, "to", 0, "")
	flags.BoolVar(&o.force, "force", false, "")
	flags.DurationVar(&o.wait, "wait", defaultLook, "")
	err := flags.Parse(args[1:])
	return o, err == nil && flags.NArg() == 0 && o.to > 0 && o.wait > 0
}

// versionsCommand is the command on versions that the arguments name, or nil.
func versionsCommand(name string, args []string) func(context.Context, *versioning) error {
	if name == "versions" && len(args) == 0 {
		return func(ctx context.Context, v *versioning) error { return v.list(ctx) }
	}
	if o, ok := parseSwitch(args); name == "switch" && ok {
		return func(ctx context.Context, v *versioning) error { return v.change(ctx, o) }
	}
	return nil
}
