package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/user"
	"slices"
	"time"

	"changerelay/services/projector/internal/cli"
	"changerelay/services/projector/internal/readmodel"
)

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

// ledgerTime bounds the last word about a decision, which a command that is
// interrupted says, too.
const ledgerTime = 10 * time.Second

// decide carries out what leaves events out or accepts something unproven, between
// its line in the ledger and that line's end: where the line cannot be written,
// nothing is done.
func decide(ctx context.Context, store *readmodel.Store, d *readmodel.Decision, deed func() error) error {
	d.By = operator()
	if err := store.Open(ctx, d); err != nil {
		return err
	}
	err := deed()
	if err != nil {
		d.Error = err.Error()
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), ledgerTime)
	defer cancel()
	return errors.Join(err, store.Close(closing, d))
}

// decide does so as a command's scope has it.
func (s *scope) decide(ctx context.Context, d *readmodel.Decision, deed func() error) error {
	if s.flags.OtherProjections {
		d.Command += " --other-projections"
	}
	return decide(ctx, s.store, d, deed)
}

// listDecisions prints the ledger.
func (s *scope) listDecisions(ctx context.Context) error {
	found := false
	err := s.store.Decisions(ctx, func(d readmodel.Decision) error {
		found = true
		return s.lines.Encode(d)
	})
	if err != nil || found {
		return err
	}
	return s.inhabited(ctx)
}

// moved is what projector move prints.
type moved struct {
	readmodel.Move
	Group  string `json:"group"`
	Moved  bool   `json:"moved"`
	DryRun bool   `json:"dry_run,omitempty"`
}

// move makes the read collections of the environment its group's own, and its
// subscription what feeds the group.
func move(ctx context.Context, stdout io.Writer, dry bool) error {
	cfg, projections, err := LoadConfig()
	if err != nil {
		return cli.Misconfigured(err)
	}
	return onReadDatabase(ctx, &cfg, projections, func(store *readmodel.Store) error {
		plan, err := store.PlanMove(ctx, projections.Collections())
		if err != nil {
			return err
		}
		done := moved{Move: *plan, Group: cfg.Group, DryRun: dry}
		if !plan.None() && !dry {
			d := &readmodel.Decision{Command: "move", Why: movedFrom(plan)}
			if err := decide(ctx, store, d, func() error { return store.Move(ctx, plan, operator()) }); err != nil {
				return err
			}
			done.Moved = true
		}
		return json.NewEncoder(stdout).Encode(done)
	})
}

// movedFrom says whose everything was.
func movedFrom(m *readmodel.Move) []string {
	var was []string
	for _, name := range slices.Sorted(maps.Keys(m.Collections)) {
		was = append(was, fmt.Sprintf("collection %q was of the group %q", name, m.Collections[name]))
	}
	if m.Taken != nil {
		was = append(was, fmt.Sprintf("%s has fed the group %q", m.To, *m.Taken))
	}
	if m.From != nil {
		was = append(was, "the group was fed by "+m.From.String())
	}
	return was
}
