package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/resend"
)

// seenResends are what this process has seen of its stream's resends, whatever term it
// was in. What is kept may be put back to an older copy at any time.
type seenResends struct {
	under *resend.Record  // taken and not known to have ended; nil where there is none
	over  map[string]bool // those that had ended
}

// resends are those that a term carries out. It implements resend.Store, and enters into
// the ledger that the record of one is gone, or an older one: nobody knows any more that
// it was asked for, or how it was decided about. It is for one goroutine.
type resends struct {
	*mongostate.Resends
	t    *term
	seen *seenResends
}

// Take implements resend.Store.
func (s *resends) Take(ctx context.Context, part int, term int64) (resend.Record, error) {
	record, err := s.Resends.Take(ctx, part, term)
	if err != nil && !errors.Is(err, resend.ErrNone) {
		return record, err
	}
	under := s.seen.under
	if under != nil && (err != nil || under.ID != record.ID) {
		if missed := s.look(ctx, part, under); missed != nil {
			return record, missed
		}
	}
	if err != nil {
		return record, err
	}
	older := under != nil && under.ID == record.ID && record.Parts[part].Read < under.Parts[part].Read
	if s.seen.over[record.ID] || older {
		if err := s.returned(ctx, &record); err != nil {
			return record, err
		}
	}
	delete(s.seen.over, record.ID)
	s.seen.under = &record
	return record, nil
}

// Save implements resend.Store.
func (s *resends) Save(ctx context.Context, id string, part int, progress resend.Part) error {
	progress.Stuck = s.t.Secrets.Text(progress.Stuck)
	err := s.Resends.Save(ctx, id, part, progress)
	under := s.seen.under
	if under == nil || under.ID != id {
		return err
	}
	if errors.Is(err, resend.ErrSuperseded) {
		return errors.Join(err, s.look(ctx, part, under))
	}
	if err == nil {
		under.Parts[part] = progress
	}
	return err
}

// look looks for one that is not to be carried out any more. It is tried again where
// that fails.
func (s *resends) look(ctx context.Context, part int, under *resend.Record) error {
	found, there, err := s.Find(ctx, under.ID)
	switch {
	case err != nil:
		return err
	case !there:
		if err := s.lost(ctx, under); err != nil {
			return err
		}
	case found.State.Ended():
		s.seen.over[under.ID] = true
	case !found.Parts[part].Done:
		return nil // it is paused, or a later term has it
	}
	s.seen.under = nil
	return nil
}

func (s *resends) lost(ctx context.Context, r *resend.Record) error {
	s.t.log.Error().Str("resend", r.ID).Msg("the record of a resend is gone, it is not carried out")
	return s.enter(ctx, r, "resend lost", fmt.Sprintf(
		"the record of resend %s, which %q began for %q, is gone from resends before its end, and what it has sent is not known: "+
			"restore the collection from a backup, or send all of it again with %s", r.ID, r.Who, r.Why, r.Command()))
}

func (s *resends) returned(ctx context.Context, r *resend.Record) error {
	s.t.log.Error().Str("resend", r.ID).Msg("the record of a resend is an older one, it goes on from there")
	return s.enter(ctx, r, "resend returned", fmt.Sprintf(
		"resend %s, which %q began for %q, had ended or had come further: resends was put back to an older copy, and it goes on from there, which only repeats; "+
			"cancel it with publisher resend cancel --why TEXT where it is not wanted, and look in publisher resend status --all for what was decided or begun since", r.ID, r.Who, r.Why))
}

func (s *resends) enter(ctx context.Context, r *resend.Record, cause, text string) error {
	err := s.t.State.Gaps(s.t.config.StreamName).Enter(ctx, mongostate.Gap{
		FromTime: r.BeganAt, ToTime: r.BeganAt, Cause: cause, Error: text,
		Decision: mongostate.Lost, At: time.Now(), Instance: s.t.config.InstanceID, Term: s.t.claimed.Term, What: r.ID,
	})
	if err == nil {
		s.t.readLedger(ctx)
	}
	return err
}
