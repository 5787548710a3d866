package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"changerelay/services/projector/internal/cli"
	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/readmodel"
)

// ledgerTime bounds the last word about a decision, which a command that is
// interrupted says, too.
const ledgerTime = 10 * time.Second

// decide carries out what leaves events out or accepts something unproven, between
// its line in the ledger and that line's end: where the line cannot be written,
// nothing is done.
func decide(ctx context.Context, store *readmodel.Store, d *readmodel.Decision, do func() error) error {
	d.By = cli.Operator()
	if err := store.Open(ctx, d); err != nil {
		return err
	}
	err := do()
	if err != nil {
		d.Error = err.Error()
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), ledgerTime)
	defer cancel()
	return errors.Join(err, store.Close(closing, d))
}

// decide does so as a command's scope has it.
func (s *scope) decide(ctx context.Context, d *readmodel.Decision, do func() error) error {
	if s.flags.OtherProjections {
		d.Command += " --other-projections"
	}
	return decide(ctx, s.store, d, do)
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
	// Refused says what speaks against it; with --leave-messages it was done all the same.
	Refused []string `json:"refused,omitempty"`
}

// errNotMoved makes a move's exit status tell that it was refused.
var errNotMoved = errors.New("not moved: let the projectors that were there run until nothing waits, or give it up with --leave-messages")

// move makes the read collections of the environment its group's own, and its
// subscription what feeds the group. Where messages wait in a subscription that is left,
// or may, it takes leave.
func move(ctx context.Context, stdout io.Writer, dry, leave bool) error {
	cfg, declared, err := config.Load(ctx)
	if err != nil {
		return cli.Misconfigured(err)
	}
	return onReadDatabase(ctx, &cfg, declared, func(db *database) error {
		store := db.store
		plan, err := store.PlanMove(ctx, db.projections.Collections())
		if err != nil {
			return err
		}
		done := moved{Move: *plan, Group: cfg.Group, DryRun: dry, Refused: leftMessages(ctx, &cfg, plan)}
		refused := len(done.Refused) > 0 && !leave
		if !plan.None() && !dry && !refused {
			d := &readmodel.Decision{Command: "move", Why: append(movedFrom(plan), done.Refused...)}
			if err := decide(ctx, store, d, func() error { return store.Move(ctx, plan, cli.Operator()) }); err != nil {
				return err
			}
			done.Moved = true
		}
		err = json.NewEncoder(stdout).Encode(done)
		if err == nil && refused {
			err = errNotMoved
		}
		return err
	})
}

// movedFrom says whose everything was.
func movedFrom(m *readmodel.Move) []string {
	var was []string
	for _, name := range slices.Sorted(maps.Keys(m.Collections)) {
		was = append(was, fmt.Sprintf("collection %q was of the group %q", name, m.Collections[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(m.Positions)) {
		was = append(was, fmt.Sprintf("positions of projection %q were of the group %q", name, m.Positions[name]))
	}
	if m.Taken != nil {
		was = append(was, fmt.Sprintf("%s has fed the group %q", m.To, *m.Taken))
	}
	if keeper, keeps := m.Keeper(m.To); keeps {
		was = append(was, fmt.Sprintf("nothing feeds %q any more, which the group %q keeps", m.Kept, keeper))
	}
	if m.From != nil {
		was = append(was, "the group was fed by "+m.From.String())
	}
	return was
}
