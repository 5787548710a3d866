package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/readmodel"
)

// list prints the parked messages, of one aggregate or all, one a line. None are
// good news only where there is a projector, and where none are gone.
func (s *scope) list(ctx context.Context, aggregate string) error {
	found := false
	err := s.store.Parked.Each(ctx, aggregate, func(p readmodel.ParkedMessage) error {
		found = true
		return s.lines.Encode(p)
	})
	if err != nil {
		return err
	}
	gone, err := s.gone(ctx, aggregate)
	if err != nil {
		return err
	}
	if len(gone) > 0 {
		return fmt.Errorf("%w: %d of the aggregates %q: restore parked_messages; a redrive stops at these aggregates, and says what else can be done",
			errGone, gone.Messages(), gone.First())
	}
	if found {
		return nil
	}
	return s.inhabited(ctx)
}

// errGone makes the exit status tell that there is more to know than what is listed.
var errGone = errors.New("messages that were parked are gone, and nobody has redriven or discarded them")

// gone is how many parked messages an aggregate lacks, or all, where it is "".
func (s *scope) gone(ctx context.Context, aggregate string) (readmodel.Gone, error) {
	if aggregate == "" {
		return s.store.Parked.Gone(ctx)
	}
	missing, err := s.store.Parked.Missing(ctx, aggregate)
	if err != nil || missing == 0 {
		return nil, err
	}
	return readmodel.Gone{aggregate: missing}, nil
}

// wholeParked is a parked message as it is printed whole.
type wholeParked struct {
	readmodel.ParkedMessage
	Message shownMessage `json:"message"`
	// DryRun tells that a discard would have removed it.
	DryRun bool `json:"dry_run,omitempty"`
}

// show prints an aggregate's parked messages whole.
func (s *scope) show(ctx context.Context, aggregate string) error {
	found := false
	err := s.store.Parked.Each(ctx, aggregate, func(p readmodel.ParkedMessage) error {
		found = true
		return s.lines.Encode(wholeParked{ParkedMessage: p, Message: show(p.Message)})
	})
	if err == nil && !found {
		err = errNotParked
	}
	return err
}

// errHalted makes a redrive's exit status tell that aggregates are still halted.
var errHalted = errors.New("aggregates are still halted")

// redrive applies the parked messages of an aggregate, or of all where it is "".
func (s *scope) redrive(ctx context.Context, aggregate string) error {
	putBack, lost, err := s.putHaltsBack(ctx, aggregate)
	if err != nil {
		return err
	}
	aggregates, err := s.halted(ctx, aggregate, putBack)
	if err != nil {
		return err
	}
	summary := redriveSummary{Step: "done", DryRun: s.flags.DryRun}
	each := func(done delivery.Redriven) error {
		summary.add(done)
		done.PutBack = slices.Contains(putBack, done.AggregateID)
		return s.lines.Encode(done)
	}
	if s.flags.DryRun {
		err = s.rehearseAll(ctx, aggregates, lost, &summary)
	} else {
		err = s.accepting(ctx, "parked redrive", aggregates, func(gaps delivery.Gaps) error {
			return delivery.RedriveAll(ctx, s.decider(), s.store.Writes, s.store.Parked, gaps, aggregates, each)
		})
	}
	if aggregate == "" {
		err = errors.Join(err, s.lines.Encode(summary))
	}
	if err != nil {
		return err
	}
	if summary.StillHalted > 0 {
		return fmt.Errorf("%w: %d", errHalted, summary.StillHalted)
	}
	return nil
}

// accepting runs a redrive, with a line in the ledger where it is to go on over
// what is missing or not followed. The line names the aggregates while it is open,
// and at its end the events that were let pass.
func (s *scope) accepting(ctx context.Context, command string, aggregates []string, redrive func(delivery.Gaps) error) error {
	gaps := s.gaps()
	if len(aggregates) == 0 || !gaps.Accept && !gaps.Unfollowed && !gaps.Lost {
		return redrive(gaps)
	}
	d := &readmodel.Decision{Command: command}
	if gaps.Accept {
		d.Command += " --accept-gaps"
	}
	if gaps.Unfollowed {
		d.Command += " --accept-unfollowed"
	}
	if gaps.Lost {
		d.Command += " --accept-lost"
	}
	for _, aggregate := range aggregates {
		d.Add(readmodel.Named{Aggregate: aggregate})
	}
	return s.decide(ctx, d, func() error {
		d.About, d.Count = nil, 0
		var mu sync.Mutex
		gaps.Left = func(e *contract.Event, why string) {
			mu.Lock()
			defer mu.Unlock()
			d.Add(namedEvent(e, why))
		}
		return redrive(gaps)
	})
}

// namedEvent is an event as the ledger has it.
func namedEvent(e *contract.Event, reason string) readmodel.Named {
	n := readmodel.Named{Aggregate: e.AggregateID, Event: e.ID, Reason: reason}
	if e.Version.Known {
		n.Version = &e.Version.Number
	}
	return n
}

// decider decides about what was parked.
func (s *scope) decider() delivery.Decider { return s.records.Decider(s.projections, s.declared) }

// gaps is how a redrive deals with what is missing.
func (s *scope) gaps() delivery.Gaps {
	return delivery.Gaps{Versions: s.versions, Filling: s.filling, Accept: s.flags.AcceptGaps, Unfollowed: s.flags.AcceptUnfollowed, Lost: s.flags.AcceptLost}
}

// putHaltsBack puts the halt of an aggregate back where it is lost, or of all where it
// is "", so that nothing is applied over what was parked meanwhile. It returns which; a
// dry run puts none back, and returns what is lost of them.
func (s *scope) putHaltsBack(ctx context.Context, aggregate string) (aggregates []string, lost []delivery.LostHalt, err error) {
	var only []string
	if aggregate != "" {
		only = []string{aggregate}
	}
	if !s.flags.DryRun {
		aggregates, err = delivery.Rehalt(ctx, s.store.Parked, s.store.Parking, true, only...)
		return aggregates, nil, err
	}
	lost, err = s.store.Parked.Unhalted(ctx, only...)
	for i := range lost {
		aggregates = append(aggregates, lost[i].Event.AggregateID)
	}
	return aggregates, lost, err
}

// halted are the aggregates that a redrive is for: those that are halted, and those
// whose halts are put back. It is an error where the one that is asked for is not
// among them.
func (s *scope) halted(ctx context.Context, aggregate string, putBack []string) ([]string, error) {
	if aggregate == "" {
		halted, err := s.store.Halts.HaltedFor(ctx, "")
		halted = append(halted, putBack...)
		slices.Sort(halted)
		return slices.Compact(halted), err
	}
	halt, err := s.store.Halts.Halted(ctx, aggregate)
	if err == nil && halt == "" && len(putBack) == 0 {
		err = fmt.Errorf("aggregate %q is not halted in the group %q of %q: see projector parked list", aggregate, s.cfg.Group, s.cfg.Database)
	}
	return []string{aggregate}, err
}

// rehearsalsAtOnce is how many aggregates are rehearsed side by side: each has a few
// messages in memory.
const rehearsalsAtOnce = 4

// rehearseAll rehearses redrives. The halts that are lost would be put back first.
func (s *scope) rehearseAll(ctx context.Context, aggregates []string, lost []delivery.LostHalt, summary *redriveSummary) error {
	return delivery.InOrder(ctx, len(aggregates), rehearsalsAtOnce, func(i int) (rehearsed, error) {
		of := slices.IndexFunc(lost, func(l delivery.LostHalt) bool { return l.Event.AggregateID == aggregates[i] })
		if of >= 0 && lost[of].Deleted && !s.flags.AcceptLost {
			return rehearsed{AggregateID: aggregates[i], DryRun: true, FailedEventID: lost[of].Event.ID, Reason: lost[of].Stops()}, nil
		}
		return s.rehearse(ctx, aggregates[i])
	}, func(r rehearsed) error {
		summary.add(delivery.Redriven{Applied: r.WouldApply, PassedBy: r.PassedBy, Lost: r.WouldLose, Lifted: r.Reason == "", Reason: r.Reason})
		return s.lines.Encode(r)
	})
}

// rehearsed is what a redrive would do, as far as that shows without a write.
type rehearsed struct {
	AggregateID string `json:"aggregate"`
	DryRun      bool   `json:"dry_run"`
	// WouldApply counts the messages that the projections make writes of.
	WouldApply    int    `json:"would_apply"`
	PassedBy      int    `json:"would_pass_by"`
	WouldLose     int    `json:"would_lose,omitempty"`
	FailedEventID string `json:"failed_event_id,omitempty"`
	Reason        string `json:"reason,omitempty"`
}

// rehearse says what a redrive would do, and why it would stop, if it would.
func (s *scope) rehearse(ctx context.Context, aggregate string) (rehearsed, error) {
	r := rehearsed{AggregateID: aggregate, DryRun: true}
	rehearsal, failed, reason, err := delivery.Rehearse(ctx, s.decider(), s.store.Parked, s.gaps(), aggregate)
	if err != nil {
		return r, err
	}
	r.FailedEventID, r.Reason = failed, reason
	err = s.store.Parked.Each(ctx, aggregate, func(p readmodel.ParkedMessage) error {
		if r.Reason != "" {
			return nil
		}
		reason, err := rehearsal.Next(ctx, &delivery.ParkedMessage{Message: p.Message, FollowedBy: p.FollowedBy, Returned: p.Returned, Behind: p.Behind, Foreign: p.Foreign})
		if reason != "" {
			r.FailedEventID, r.Reason = p.EventID, reason
		}
		return err
	})
	if rehearsal != nil {
		r.WouldApply, r.PassedBy, r.WouldLose = rehearsal.Applied, rehearsal.PassedBy, rehearsal.Lost
	}
	return r, err
}

// errNotParked tells that there is nothing to show or to discard.
var errNotParked = errors.New("no such message is parked")

// discard removes an aggregate's parked message by its event, or all of them
// where event is "". It prints each whole before it removes it: there is no other
// copy. What is parked after the ledger has named them stays, and so does the halt,
// until a redrive.
func (s *scope) discard(ctx context.Context, aggregate, event string) error {
	d := &readmodel.Decision{Command: "parked discard"}
	asked := func(p *readmodel.ParkedMessage) bool { return event == "" || p.EventID == event }
	type key struct {
		sequence contract.Sequence
		event    string
	}
	named := map[key]bool{}
	err := s.parkedOnes(ctx, aggregate, asked, func(p *readmodel.ParkedMessage) error {
		if !s.flags.DryRun {
			named[key{p.Sequence, p.EventID}] = true
			d.Add(namedParked(p))
			return nil
		}
		return s.lines.Encode(wholeParked{*p, show(p.Message), true})
	})
	if err != nil || s.flags.DryRun {
		return err
	}
	return s.decide(ctx, d, func() error {
		d.About, d.Count = nil, 0
		known := func(p *readmodel.ParkedMessage) bool { return named[key{p.Sequence, p.EventID}] }
		return s.parkedOnes(ctx, aggregate, known, func(p *readmodel.ParkedMessage) error {
			if err := s.lines.Encode(wholeParked{*p, show(p.Message), false}); err != nil {
				return err
			}
			d.Add(namedParked(p))
			return s.store.Parked.Discard(ctx, p)
		})
	})
}

// namedParked is a parked message as the ledger has it.
func namedParked(p *readmodel.ParkedMessage) readmodel.Named {
	return readmodel.Named{Aggregate: p.AggregateID, Event: p.EventID, Version: p.Version, Reason: p.Reason}
}

// parkedOnes calls each for those of an aggregate's parked messages that are meant.
func (s *scope) parkedOnes(ctx context.Context, aggregate string, meant func(*readmodel.ParkedMessage) bool, each func(*readmodel.ParkedMessage) error) error {
	found := false
	err := s.store.Parked.Each(ctx, aggregate, func(p readmodel.ParkedMessage) error {
		if !meant(&p) {
			return nil
		}
		if p.Foreign != "" {
			return fmt.Errorf("%w: event %q: %s", errOutOfScope, p.EventID, p.Foreign)
		}
		found = true
		return each(&p)
	})
	if err == nil && !found {
		err = errNotParked
	}
	return err
}
