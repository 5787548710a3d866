package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/servicebus"
	"changerelay/services/projector/internal/session"
)

// returned is what becomes of a dead letter, as it is printed.
type returned struct {
	SequenceNumber int64               `json:"sequence_number"`
	MessageID      string              `json:"message_id"`
	AggregateID    string              `json:"aggregate,omitempty"`
	Sequence       contract.Sequence   `json:"sequence,omitempty"`
	Fate           delivery.ReturnFate `json:"fate"`
	Reason         string              `json:"reason,omitempty"`
	DryRun         bool                `json:"dry_run,omitempty"`
}

// aggregatesAtOnce is how many aggregates are halted at once to put their dead
// letters back. Each halt is waited for, and they are so together.
const aggregatesAtOnce = 50

var errNotReturned = errors.New("dead letters stay where they are")

// place is where a dead letter belongs.
type place struct {
	number    int64
	aggregate string // "" for none
	sequence  contract.Sequence
}

// returnDead puts a dead letter back in its aggregate's order, or all of them.
func (s *scope) returnDead(ctx context.Context, letters *servicebus.DeadLetters, number int64, all bool) error {
	var places []place
	err := letters.Peek(ctx, func(d servicebus.DeadLetter) error {
		p := place{number: d.SequenceNumber}
		if event, placed := contract.Place(d.Message.Message); placed {
			p.aggregate, p.sequence = event.AggregateID, event.Sequence
		}
		places = append(places, p)
		return nil
	})
	if err != nil {
		return err
	}
	if !all {
		if places, err = only(places, number); err != nil {
			return err
		}
	}
	r := &returning{scope: s, letters: letters, gaps: s.gaps(), tried: map[string]bool{}}
	r.summary.Step, r.summary.DryRun = "done", s.flags.DryRun
	if s.flags.DryRun {
		return r.run(ctx, places, number, all)
	}
	if all {
		if r.left, err = s.store.Halts.HaltedFor(ctx, delivery.ReturnHalt); err != nil {
			return err
		}
	}
	return s.accepting(ctx, "dlq redrive", halting(places, r.left), func(gaps delivery.Gaps) error {
		r.gaps = gaps
		return r.run(ctx, places, number, all)
	})
}

// halting are the aggregates that places or earlier runs halt.
func halting(places []place, left []string) []string {
	aggregates := slices.Clone(left)
	for _, p := range places {
		if p.aggregate != "" {
			aggregates = append(aggregates, p.aggregate)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(aggregates)))
}

// run puts what is at places back, and finishes what earlier runs have left.
func (r *returning) run(ctx context.Context, places []place, number int64, all bool) error {
	var errs []error
	for some := range slices.Chunk(byAggregate(places), aggregatesAtOnce) {
		err := r.some(ctx, some)
		if err != nil {
			for _, group := range some {
				r.tried[group[0].aggregate] = true
			}
		}
		if errs = append(errs, err); ctx.Err() != nil {
			return errors.Join(errs...)
		}
	}
	left := slices.DeleteFunc(r.left, func(aggregate string) bool { return r.tried[aggregate] })
	gaps := r.gaps
	gaps.Returning = true
	errs = append(errs, delivery.RedriveAll(ctx, r.decider(), r.store.Writes, r.store.Parked, gaps, left, r.redriven))
	if all {
		errs = append(errs, r.lines.Encode(r.summary))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fates := r.summary.Fates
	if !all && fates[delivery.ReturnGone] > 0 {
		return fmt.Errorf("%w any more: somebody else has dealt with dead letter %d meanwhile", errNoDeadLetter, number)
	}
	refused := 0
	for _, fate := range staying {
		refused += fates[fate]
	}
	if refused > 0 || r.summary.StillHalted > 0 {
		return fmt.Errorf("%w: %d; and %d of their aggregates are still halted", errNotReturned, refused, r.summary.StillHalted)
	}
	return nil
}

// only is the place of one dead letter, unless another one of its aggregate comes
// before it: once the later one is applied, the earlier one cannot be any more.
func only(places []place, number int64) ([]place, error) {
	at := slices.IndexFunc(places, func(p place) bool { return p.number == number })
	if at < 0 {
		return nil, errNoDeadLetter
	}
	mine := places[at]
	for _, p := range places {
		if mine.aggregate != "" && p.aggregate == mine.aggregate && p.sequence < mine.sequence {
			return nil, fmt.Errorf("%w: dead letter %d of aggregate %q comes before %d: put it back first, or all with --all", errNotReturned, p.number, p.aggregate, number)
		}
	}
	return []place{mine}, nil
}

// byAggregate puts places together that are of one aggregate, in order; each of
// none is by itself.
func byAggregate(places []place) [][]place {
	slices.SortStableFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.aggregate, b.aggregate), cmp.Compare(a.sequence, b.sequence))
	})
	var groups [][]place
	for i, p := range places {
		if i > 0 && p.aggregate != "" && p.aggregate == places[i-1].aggregate {
			groups[len(groups)-1] = append(groups[len(groups)-1], p)
			continue
		}
		groups = append(groups, []place{p})
	}
	return groups
}

// returning is a run of returnDead.
type returning struct {
	*scope
	letters *servicebus.DeadLetters
	gaps    delivery.Gaps
	summary returnSummary
	// left are the aggregates that an earlier run has left halted: one that was killed
	// after it had taken their dead letters away, or before it had halted more, or
	// that stopped before a message.
	left []string
	// tried are the aggregates whose messages were put back, or may have to be yet.
	tried map[string]bool
}

// Message implements delivery.Letters.
func (r *returning) Message(ctx context.Context, number int64) (m session.Message, found bool, err error) {
	d, found, err := r.letters.At(ctx, number)
	return d.Message, found, err
}

// some deals with the dead letters of some aggregates.
func (r *returning) some(ctx context.Context, groups [][]place) error {
	work := delivery.PutBack{
		Letters: r, Decider: r.decider(), Store: r.store.Writes, Parking: r.store.Parking, ParkedMessages: r.store.Parked, Gaps: r.gaps, Group: r.cfg.Group,
	}
	var aggregates [][]delivery.Letter
	var errs []error
	for _, group := range groups {
		var kept []delivery.Letter
		var order delivery.Order
		for _, p := range group {
			judged, err := r.judge(ctx, &work, p)
			if err != nil {
				errs = append(errs, fmt.Errorf("dead letter %d of aggregate %q: %w", p.number, p.aggregate, err))
				kept = nil
				break
			}
			judged = order.Next(judged)
			// For what stays, or is gone, nothing is halted.
			if r.flags.DryRun || judged.Fate == delivery.ReturnGone || slices.Contains(staying, judged.Fate) {
				if err := r.print(judged); err != nil {
					return err
				}
				continue
			}
			kept = append(kept, *judged.Letter)
		}
		if len(kept) > 0 {
			aggregates = append(aggregates, kept)
			r.tried[kept[0].Event.AggregateID] = true
		}
	}
	if len(aggregates) == 0 {
		return errors.Join(errs...)
	}
	returns, redriven, err := work.Run(ctx, aggregates, r.remove)
	err = errors.Join(append(errs, err)...)
	for _, one := range returns {
		err = errors.Join(err, r.print(one))
	}
	for _, one := range redriven {
		err = errors.Join(err, r.redriven(one))
	}
	return err
}

// staying are the fates of those that stay where they are.
var staying = []delivery.ReturnFate{delivery.ReturnRefused, delivery.ReturnDiscarded, delivery.ReturnSettled, delivery.ReturnNobodys}

// judge tells what is to become of one dead letter, which it looks at.
func (r *returning) judge(ctx context.Context, work *delivery.PutBack, p place) (delivery.Return, error) {
	d, found, err := r.letters.At(ctx, p.number)
	if err != nil {
		return delivery.Return{}, err
	}
	if !found {
		gone := delivery.Letter{SequenceNumber: p.number, Event: contract.Event{AggregateID: p.aggregate, Sequence: p.sequence}}
		return delivery.Return{Letter: &gone, Fate: delivery.ReturnGone}, nil
	}
	letter := delivery.LetterOf(&d.Message, d.Reason)
	return work.Judge(ctx, &letter, d.Message.Message)
}

// redriven prints what became of an aggregate.
func (r *returning) redriven(one delivery.Redriven) error {
	r.summary.add(one)
	return r.lines.Encode(one)
}

// remove takes dead letters away that are stored by now.
func (r *returning) remove(ctx context.Context, done []*delivery.Letter) error {
	numbers := make([]int64, len(done))
	for i := range done {
		numbers[i] = done[i].SequenceNumber
	}
	removed := 0
	err := r.letters.Discard(ctx, discardWait, numbers, func(_ servicebus.DeadLetter, remove servicebus.Removal) error {
		err := remove()
		if err == nil {
			removed++
		}
		return err
	})
	if err == nil && removed < len(numbers) {
		// They are parked or applied, so another attempt finds that.
		err = fmt.Errorf("%d of %d: %w", len(numbers)-removed, len(numbers), errDeadLocked)
	}
	return err
}

func (r *returning) print(one delivery.Return) error {
	r.summary.tell(&one)
	return r.lines.Encode(returned{
		SequenceNumber: one.Letter.SequenceNumber, MessageID: one.Letter.ID,
		AggregateID: one.Letter.Event.AggregateID, Sequence: one.Letter.Event.Sequence,
		Fate: one.Fate, Reason: one.Reason, DryRun: r.flags.DryRun,
	})
}
