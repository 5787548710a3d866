package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/rebuild"
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
	nothing, err := r.nothingArrived(ctx)
	if err != nil {
		return err
	}
	lacks, err := r.against(ctx, r.next(), r.record.Current, r.o.wait, resentAnew, recorded)
	if err != nil {
		return err
	}
	refused = slices.Concat(refused, nothing, lacks)
	if len(refused) > 0 && !r.o.force {
		return r.refuse("compare", refused)
	}
	unlike, err := r.alike(ctx)
	if err != nil {
		return err
	}
	if refused = append(refused, unlike...); len(unlike) > 0 && !r.o.force {
		return r.refuse("compare", refused)
	}
	follow := func() error { return r.revise(ctx, r.record.Follow()) }
	if len(refused) == 0 {
		return follow()
	}
	return r.decide(ctx, r.forced(refused...), follow)
}

// alike has the next version refuse what the current one refuses, by validator and unique
// indexes, and returns which it cannot have.
func (r *rebuilding) alike(ctx context.Context) (refused []string, err error) {
	current, next := r.declared.Other(r.record.Current), r.next()
	more, err := r.store.LikeOptions(ctx, current, next)
	if err != nil {
		return nil, err
	}
	if more > 0 {
		refused = append(refused, fmt.Sprintf("version %d cannot have the validator of version %d, which refuses %d more documents of it", next.Number, current.Number, more))
	}
	indexes, err := r.store.LikeUnique(ctx, current, next)
	for _, index := range indexes {
		refused = append(refused, fmt.Sprintf("version %d cannot have the unique index %q of version %d, since documents have the same values", next.Number, index, current.Number))
	}
	return refused, err
}

// recorded is why messages are dead-lettered whose events do not speak against a rebuild:
// they are resent as all others are. What the next version cannot apply either is recorded
// as skipped by it.
const recorded = delivery.ReasonNotApplied

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
	err := r.while(ctx, func(rebuild.Records) (bool, *rebuildStep, error) {
		return !time.Now().Before(end), &rebuildStep{Step: "switched", Until: end}, nil
	})
	if err != nil {
		return err
	}
	live, err := r.store.Live(ctx, &r.declared)
	if err != nil {
		return err
	}
	refused, err := r.holes(ctx, recorded)
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
	return r.done(ctx)
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
	if live != r.record.Current && live != r.record.Next {
		return r.refuse("switch", []string{r.elsewhere(live)})
	}
	done := switched{Projection: r.o.name, From: r.record.Current, To: r.record.Next}
	if done.Refused, err = r.against(ctx, r.next(), r.record.Current, r.o.wait, resentAnew, recorded); err != nil {
		return err
	}
	if len(done.Refused) > 0 && !r.o.force {
		return r.refuse("switch", done.Refused)
	}
	since, err := r.hold(ctx)
	if err != nil {
		return err
	}
	err = acting(ctx, since, func(ctx context.Context) error { return r.present(ctx, r.next(), &done) })
	if err == nil {
		err = r.note(ctx, r.record.Switch(time.Now().UTC()))
	}
	return r.righted(ctx, err)
}

// elsewhere says that readers see a version that is none of the rebuild's.
func (r *rebuilding) elsewhere(live int) string {
	if live == 0 {
		return fmt.Sprintf("readers see no version, since there is no view %q: projector setup makes it again", r.declared.View)
	}
	return fmt.Sprintf("readers see version %d, which is neither the one that is rebuilt nor the new one: --cancel ends the rebuild", live)
}

// hold has the record for this command alone, to change what readers see, from some time
// after since.
func (r *rebuilding) hold(ctx context.Context) (since time.Time, err error) {
	err = r.whenFree(ctx, func() (err error) {
		since = time.Now()
		r.record, err = r.store.Hold(ctx, r.record)
		return err
	})
	return since, err
}

// righted has readers see what the record says where a change of what they see failed, or
// could not be noted, because another command has gone on: this one may have come after it.
func (r *rebuilding) righted(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if _, overtaken := r.stored(ctx); errors.Is(overtaken, readmodel.ErrRevised) {
		return errors.Join(err, r.putRight(ctx, &r.declared))
	}
	return err
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
		if err := r.note(ctx, r.record.Drop(number)); err != nil {
			return err
		}
	}
	return nil
}

// done drops what nobody writes any more, and says that this was the last step.
func (r *rebuilding) done(ctx context.Context) error {
	if err := r.clear(ctx); err != nil {
		return err
	}
	return r.say(&rebuildStep{Step: "done"})
}

// abandon ends a rebuild with the old documents.
func (r *rebuilding) abandon(ctx context.Context) error {
	if r.record.Next == 0 {
		return fmt.Errorf("projection %q is not being rebuilt", r.o.name)
	}
	since, err := r.hold(ctx)
	if err != nil {
		return err
	}
	live, err := r.store.Live(ctx, &r.declared)
	if err != nil {
		return err
	}
	if live == r.record.Next {
		// It was written on, so it has what readers have seen since.
		back := func(ctx context.Context) error { return r.store.SwitchView(ctx, r.declared.Other(r.record.Current)) }
		if err := acting(ctx, since, back); err != nil {
			return r.righted(ctx, err)
		}
	}
	if err := r.cancelResend(ctx); err != nil {
		return err
	}
	resent := r.record.State == rebuild.Following // before that was so, everything had been resent
	address := r.address()
	if err := r.righted(ctx, r.revise(ctx, r.record.Abandon())); err != nil {
		return err
	}
	if r.o.publisher == "" && !resent {
		if err := r.say(&rebuildStep{Step: "cancel", Command: r.cancelled(), GoesOn: fmt.Sprintf("the resend for %s, if publisher resend status shows that it has not ended: "+
			"nothing takes what it sends, and no other resend begins before its end; the command, in the publisher's environment, ends it", address)}); err != nil {
			return err
		}
	}
	return r.done(ctx)
}
