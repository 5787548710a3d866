package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/resend"
)

// resends are those that a term carries out. It implements resend.Store, and enters into
// the ledger that the record of one is gone under it: nobody knows any more that it was
// asked for. It is for one goroutine.
type resends struct {
	*mongostate.Resends
	t     *term
	under *resend.Record // taken last; nil where none is under way
}

// Take implements resend.Store.
func (s *resends) Take(ctx context.Context, part int, term int64) (resend.Record, error) {
	record, err := s.Resends.Take(ctx, part, term)
	switch {
	case err == nil:
		s.under = &record
	case errors.Is(err, resend.ErrNone):
		if gone := s.missed(ctx); gone != nil {
			return record, gone
		}
	}
	return record, err
}

// Save implements resend.Store.
func (s *resends) Save(ctx context.Context, id string, part int, progress resend.Part) error {
	err := s.Resends.Save(ctx, id, part, progress)
	if errors.Is(err, resend.ErrSuperseded) {
		err = errors.Join(err, s.missed(ctx))
	}
	return err
}

// missed enters what is gone into the ledger, and is tried again where it fails.
func (s *resends) missed(ctx context.Context) error {
	if s.under == nil {
		return nil
	}
	there, err := s.Has(ctx, s.under.ID)
	if err != nil {
		return err
	}
	if !there {
		if err := s.enter(ctx, s.under); err != nil {
			return err
		}
	}
	s.under = nil
	return nil
}

func (s *resends) enter(ctx context.Context, r *resend.Record) error {
	text := fmt.Sprintf("the record of resend %s, which %q began for %q, is gone from resends before its end, and what it has sent is not known: "+
		"restore the collection from a backup, or send all of it again with %s", r.ID, r.Who, r.Why, r.Command())
	s.t.log.Error().Str("resend", r.ID).Msg("the record of a resend is gone, it is not carried out")
	err := s.t.State.Gaps(s.t.config.StreamName).Enter(ctx, mongostate.Gap{
		FromTime: r.BeganAt, ToTime: r.BeganAt, Cause: "resend lost", Error: text,
		Decision: mongostate.Lost, At: time.Now(), Instance: s.t.config.InstanceID, Term: s.t.claimed.Term, What: r.ID,
	})
	if err == nil {
		s.t.readLedger(ctx)
	}
	return err
}
