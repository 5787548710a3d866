package command

import (
	"context"
	"fmt"
	"time"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
)

// fill waits until the next version has everything, and has it follow the current one.
func (r *rebuilding) fill(ctx context.Context) error {
	if err := r.known(ctx); err != nil {
		return err
	}
	if err := r.store.LikeIndexes(ctx, r.declared.Other(r.record.Current), r.next()); err != nil {
		return err
	}
	refused, err := r.resend(ctx)
	if err != nil {
		return err
	}
	if err := r.arrived(ctx); err != nil {
		return err
	}
	lacks, err := r.against(ctx, r.next(), r.record.Current, r.o.wait)
	if err != nil {
		return err
	}
	refused = append(refused, lacks...)
	if len(refused) > 0 && !r.o.force {
		return r.refuse("compare", refused)
	}
	follow := func() error { return r.revise(ctx, r.record.Follow()) }
	if len(refused) == 0 {
		return follow()
	}
	return r.decide(ctx, &readmodel.Decision{Command: fmt.Sprintf("rebuild --projection %s --force", r.o.name), Why: refused}, follow)
}

func (r *rebuilding) next() *projection.Version { return r.declared.Other(r.record.Next) }

// finish has readers see the next version, and drops the current one after the grace.
func (r *rebuilding) finish(ctx context.Context) error {
	if err := r.known(ctx); err != nil {
		return err
	}
	if err := r.show(ctx); err != nil {
		return err
	}
	end := r.record.SwitchedAt.Add(r.o.grace)
	err := r.until(ctx, func() (bool, *rebuildStep, error) {
		_, err := r.stored(ctx)
		return !time.Now().Before(end), &rebuildStep{Step: "switched", Until: end}, err
	})
	if err != nil {
		return err
	}
	live, err := r.store.Live(ctx, &r.declared)
	if err != nil {
		return err
	}
	refused, err := r.holes(ctx)
	if err != nil {
		return err
	}
	if live != r.record.Next {
		refused = append(refused, fmt.Sprintf("readers see version %d again", live))
	}
	// What is parked is noted to be followed by both versions.
	if len(refused) > 0 {
		return r.refuse("settle", refused)
	}
	if err := r.revise(ctx, r.record.Settle()); err != nil {
		return err
	}
	return r.clear(ctx)
}

// show has readers see the next version, unless they were switched to it before. Every
// projector has it follow by now, so what it has it keeps.
func (r *rebuilding) show(ctx context.Context) error {
	if !r.record.SwitchedAt.IsZero() {
		return nil
	}
	live, err := r.store.Live(ctx, &r.declared)
	if err != nil {
		return err
	}
	if live != r.record.Next {
		done := switched{Projection: r.o.name, From: r.record.Current, To: r.record.Next}
		if done.Refused, err = r.against(ctx, r.next(), r.record.Current, r.o.wait); err != nil {
			return err
		}
		if len(done.Refused) > 0 && !r.o.force {
			return r.refuse("switch", done.Refused)
		}
		if err := r.present(ctx, r.next(), &done); err != nil {
			return err
		}
	}
	r.record.SwitchedAt = time.Now().UTC()
	return r.store.Switched(ctx, &r.record, r.record.SwitchedAt)
}

// clear drops what nobody writes any more.
func (r *rebuilding) clear(ctx context.Context) error {
	if err := r.known(ctx); err != nil {
		return err
	}
	live, err := r.store.Live(ctx, &r.declared)
	if err != nil {
		return err
	}
	for _, number := range r.record.Retired {
		if number == live {
			return r.refuse("drop", []string{fmt.Sprintf("readers see version %d, which is to be dropped: projector switch %s --to %d", number, r.o.name, r.current())})
		}
		if err := r.store.Drop(ctx, r.declared.Other(number)); err != nil {
			return err
		}
		if err := r.store.Dropped(ctx, &r.record, number); err != nil {
			return err
		}
	}
	r.record.Retired = nil
	return r.say(&rebuildStep{Step: "done"})
}

// abandon ends a rebuild with the old documents.
func (r *rebuilding) abandon(ctx context.Context) error {
	if r.record.Next == 0 {
		return fmt.Errorf("projection %q is not being rebuilt", r.o.name)
	}
	live, err := r.store.Live(ctx, &r.declared)
	if err != nil {
		return err
	}
	if live == r.record.Next {
		// It was written on, so it has what readers have seen since.
		if err := r.store.Stand(ctx, r.declared.Other(r.record.Current)); err != nil {
			return err
		}
	}
	if err := r.cancelResend(ctx); err != nil {
		return err
	}
	if err := r.revise(ctx, r.record.Abandon()); err != nil {
		return err
	}
	return r.clear(ctx)
}
