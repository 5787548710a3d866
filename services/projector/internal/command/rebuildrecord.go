package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/rebuild"
	"changerelay/services/projector/internal/shell"
)

// revise stores the next state of the record, and waits until every projector that
// lives works by it.
func (r *rebuilding) revise(ctx context.Context, next rebuild.Record) error {
	if err := r.note(ctx, next); err != nil {
		return err
	}
	return r.known(ctx)
}

// note stores the next state of the record, unless somebody else has gone on with it. It
// waits for a command that has it for itself.
func (r *rebuilding) note(ctx context.Context, next rebuild.Record) error {
	return r.whenFree(ctx, func() error {
		err := r.store.Revise(ctx, r.record, next)
		if err == nil {
			r.record = next
		}
		return err
	})
}

// whenFree changes the record once no other command has it for itself.
func (r *rebuilding) whenFree(ctx context.Context, change func() error) error {
	return r.until(ctx, func() (bool, *rebuildStep, error) {
		err := change()
		if errors.Is(err, readmodel.ErrHeld) {
			return false, &rebuildStep{Step: string(r.record.State), Waiting: []string{"another command, which changes what readers see, or has died at it"}}, nil
		}
		return true, nil, err
	})
}

// known waits until every projector that lives works by the record.
func (r *rebuilding) known(ctx context.Context) error {
	return r.while(ctx, func(records rebuild.Records) (bool, *rebuildStep, error) {
		others, err := r.lagging(ctx, records)
		return len(others) == 0, &rebuildStep{Step: string(r.record.State), Waiting: others}, err
	})
}

// lagging are the projectors that live and do not work by the records, as what is waited for.
func (r *rebuilding) lagging(ctx context.Context, records rebuild.Records) ([]string, error) {
	others, all, err := r.store.Elsewhere(ctx, records.Signature(r.scope.declared))
	if err != nil {
		return nil, err
	}
	if all == 0 {
		others = []string{"any projector"}
	}
	for i := range others {
		others[i] += " to begin anew"
	}
	return others, nil
}

// stored are the records; readmodel.ErrRevised where somebody else has gone on with this
// one.
func (r *rebuilding) stored(ctx context.Context) (rebuild.Records, error) {
	records, err := r.store.Rebuilds(ctx)
	if err != nil {
		return nil, err
	}
	if stored := records.Of(&r.declared); stored.Revision != r.record.Revision || stored.Turn != r.record.Turn {
		return nil, readmodel.ErrRevised
	}
	return records, nil
}

// errRebuildUnderWay means that a rebuild is in the way that another command has begun.
var errRebuildUnderWay = errors.New("a rebuild is under way")

// underWay says which one, of whom, and how to see how far it is.
func underWay(record *rebuild.Record) error {
	why := ""
	if record.Why != "" {
		why = fmt.Sprintf(" (%s)", record.Why)
	}
	return fmt.Errorf("%w of projection %q, begun by %s at %s%s: publisher resend status shows how far the resend for it is, and projector versions its documents; "+
		"projector rebuild --projection %s --dry-run says what is next", errRebuildUnderWay, record.Projection, record.Who, record.BeganAt.UTC().Format(time.RFC3339), why, shell.Word(record.Projection))
}

// overtaken is an error of a rebuild with what others have made of it, where they have gone
// on and are not at the end.
func (r *rebuilding) overtaken(ctx context.Context, err error) error {
	if !errors.Is(err, readmodel.ErrRevised) {
		return err
	}
	records, readErr := r.store.Rebuilds(ctx)
	if readErr != nil {
		return err
	}
	if record := records.Of(&r.declared); record.Next != 0 {
		return fmt.Errorf("%w: %w", err, underWay(&record))
	}
	return err
}

// while is until, and ends with readmodel.ErrRevised once somebody else has gone on.
func (r *rebuilding) while(ctx context.Context, done func(rebuild.Records) (bool, *rebuildStep, error)) error {
	return r.until(ctx, func() (bool, *rebuildStep, error) {
		records, err := r.stored(ctx)
		if err != nil {
			return false, nil, err
		}
		return done(records)
	})
}

// until looks again and again until something is done, and prints what it waits for.
func (r *rebuilding) until(ctx context.Context, done func() (bool, *rebuildStep, error)) error {
	ticker := time.NewTicker(lookAtRebuild)
	defer ticker.Stop()
	for {
		is, step, err := done()
		if err != nil || is {
			return err
		}
		if err := r.say(step); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// say prints a step, unless it was the last one that was printed.
func (r *rebuilding) say(step *rebuildStep) error {
	step.Projection, step.DryRun = r.o.name, r.flags.DryRun
	step.From, step.To = r.current(), r.record.Next
	line, err := json.Marshal(step)
	if err != nil {
		return fmt.Errorf("print a step: %w", err)
	}
	if string(line) == r.said {
		return nil
	}
	r.said = string(line)
	return r.lines.Encode(step)
}

func (r *rebuilding) refuse(step string, refused []string) error {
	if err := r.say(&rebuildStep{Step: step, Refused: refused}); err != nil {
		return err
	}
	return errUnfinished
}
