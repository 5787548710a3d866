package stream

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/mongostate"
)

// settleParked compares what is parked with what the checkpoint has noted, and notes
// what there is. Parked changes are the only copy of what was not sent: where some
// are gone, that is in the ledger first, and the stream goes on.
func (s *Stream) settleParked(ctx context.Context, claimed *checkpoint.Claimed) error {
	attempt, cancel := context.WithTimeout(ctx, config.AttemptTimeout)
	defer cancel()
	parked := s.State.Parked(s.whole)
	all, err := parked.KeptAside(attempt)
	if err != nil {
		return err
	}
	counted := mongostate.PartitionNames(s.whole, s.config.Partitions)
	for _, kept := range all {
		counted = append(counted, kept.Stream)
		own := kept.Stream == s.config.StreamName
		if !own && (s.index > 0 || !kept.Retired) {
			continue // its own leader settles it
		}
		if err := s.enterMissing(attempt, claimed.Checkpoint, "", kept); err != nil {
			return err
		}
		if own {
			err = settleOwn(attempt, parked, claimed, kept)
		} else {
			err = parked.Settle(attempt, kept)
		}
		if err != nil {
			return err
		}
	}
	if s.index > 0 {
		return nil
	}
	return s.adoptParked(attempt, claimed, counted)
}

// settleOwn notes what there is of the partition that was claimed.
func settleOwn(ctx context.Context, parked *mongostate.Parked, claimed *checkpoint.Claimed, kept mongostate.KeptAside) error {
	naming, err := parked.Naming(ctx, kept)
	if err != nil {
		return err
	}
	return claimed.Count(ctx, kept.Settled(), naming)
}

// adoptParked counts what is of no partition that has a checkpoint, or is to have one,
// as if it were parked now: it makes up for nothing that is lost, either.
func (s *Stream) adoptParked(ctx context.Context, claimed *checkpoint.Claimed, counted []string) error {
	parked := s.State.Parked(s.whole)
	for {
		page, err := parked.Unclaimed(ctx, counted)
		if err != nil || len(page) == 0 {
			return err
		}
		ids := make([]string, len(page))
		expected := make([]checkpoint.Expected, len(page))
		for i := range page {
			ids[i] = page[i].ID
			expected[i] = checkpoint.Expected{ID: page[i].ID, At: contract.Position(page[i].Position)}
		}
		if err := claimed.Expect(ctx, expected...); err != nil {
			return err
		}
		if err := parked.Adopt(ctx, s.config.StreamName, ids...); err != nil {
			return err
		}
		for i := range page {
			if err := claimed.Keep(ctx, page[i].ID, contract.Position(page[i].Position)); err != nil {
				return err
			}
		}
	}
}

// watchParked compares what is parked with what the checkpoint has noted while a term
// lasts: what is lost, or restored from before, under a leader is in the ledger then. What
// operators deal with is not counted any more.
func (t *term) watchParked(ctx context.Context) {
	for wait(ctx, t.config.LeaseTTL) {
		if err := t.missParked(ctx); err != nil {
			t.log.Debug().Err(err).Msg("parked changes not compared with the checkpoint")
		}
		if t.index > 0 {
			continue // the first partition shows the count of all
		}
		before := t.counters.Parked()
		if parked, err := t.countParked(ctx); err != nil {
			t.log.Debug().Err(err).Msg("parked changes not counted")
		} else {
			t.tracker.CountParked(parked, before)
		}
	}
}

// missParked enters what is gone into the ledger, and counts it out; what was put back
// is counted again, as it may be lost again. The first partition does so for retired
// ones, too. An entry is made again rather than not at all.
func (t *term) missParked(ctx context.Context) error {
	attempt, cancel := context.WithTimeout(ctx, config.AttemptTimeout)
	defer cancel()
	all, err := t.State.Parked(t.whole).KeptAside(attempt)
	if err != nil {
		return err
	}
	for _, kept := range all {
		own := kept.Stream == t.config.StreamName
		if !own && (t.index > 0 || !kept.Retired) || kept.Missing() == 0 && !kept.Returned() {
			continue
		}
		if kept.Missing() > 0 {
			now, err := t.State.Checkpoints().Read(attempt, t.config.StreamName)
			if err != nil {
				return err
			}
			if err := t.enterMissing(attempt, now, fmt.Sprintf(", save %d", now.Saves), kept); err != nil {
				return err
			}
			t.readLedger(attempt)
		}
		if err := t.renote(attempt, kept, own); err != nil {
			return err
		}
	}
	return nil
}

// renote notes what there is of a partition: of the own one beside what it parks.
func (t *term) renote(ctx context.Context, kept mongostate.KeptAside, own bool) error {
	parked := t.State.Parked(t.whole)
	switch {
	case !own:
		return parked.Settle(ctx, kept)
	case kept.Missing() > 0:
		return t.claimed.Miss(ctx, kept.Missing(), kept.Gone)
	}
	return t.claimed.Recount(ctx, func(coming []checkpoint.Expected) (checkpoint.Aside, checkpoint.Naming, error) {
		return parked.Recounted(ctx, kept.Stream, coming)
	})
}

// enterMissing writes into the ledger that parked changes are gone; until the note
// says so, too, that is the same entry. When tells it from another loss at the place.
func (s *Stream) enterMissing(ctx context.Context, at checkpoint.Checkpoint, when string, kept mongostate.KeptAside) error {
	if kept.Missing() == 0 {
		return nil
	}
	text := missingText(kept)
	s.log.Error().Int64("missing", kept.Missing()).Int64("noted", kept.Noted()).Str("from", string(kept.Note.From)).
		Msg("parked changes are gone, publishing goes on")
	return s.State.Gaps(s.config.StreamName).Enter(ctx, mongostate.Gap{
		From: string(kept.Note.From), FromTime: kept.Since(), ToTime: at.Time().Time(), Cause: "parked changes lost", Error: text,
		Decision: mongostate.Lost, At: time.Now(), Instance: s.config.InstanceID, Term: at.Term,
		What: fmt.Sprintf("%s, %d of %d%s at %s%s", kept.Stream, kept.Missing(), kept.Noted(), goneText(kept.Gone), at.Position, when),
	})
}

// missingText says how many parked changes are gone, and the way back.
func missingText(kept mongostate.KeptAside) string {
	const force = "with --force while publishers run"
	anew := "START_AT=snapshot and publisher checkpoint reset --why TEXT" + itsPartition(kept)
	back := fmt.Sprintf("go back before the oldest of them with publisher checkpoint set %s --why TEXT%s, %s: "+
		"it sends what came since again and parks anew what cannot be sent, but for what a copy had parked since, which takes %s",
		kept.Since().Format(time.RFC3339), itsPartition(kept), force, anew)
	if kept.OfCopy() {
		back = fmt.Sprintf("copy what the source still has anew with %s, %s: it parks anew what cannot be sent", anew, force)
	}
	return fmt.Sprintf("%d of %d changes that %q has parked are gone from parked_changes%s, and whether they were sent is not known: "+
		"restore the collection from a backup, or %s", kept.Missing(), kept.Noted(), kept.Stream, goneText(kept.Gone), back)
}

// partitionNumber matches the end of a partition's name.
var partitionNumber = regexp.MustCompile(`-([0-9]+)of[0-9]+$`)

// itsPartition is the argument by which a command is about the partition that had
// parked the changes, whatever others wait for; about all, where it is retired, as
// others carry its aggregates.
func itsPartition(kept mongostate.KeptAside) string {
	number := partitionNumber.FindStringSubmatch(kept.Stream)
	switch {
	case kept.Retired:
		return " --partition all"
	case number == nil:
		return ""
	}
	return " --partition " + number[1]
}

// goneText names the first of those that are known to be gone.
func goneText(ids []string) string {
	const most = 5
	switch {
	case len(ids) == 0:
		return ""
	case len(ids) > most:
		return fmt.Sprintf(" (%s and others)", strings.Join(ids[:most], ", "))
	}
	return fmt.Sprintf(" (%s)", strings.Join(ids, ", "))
}

// MissingParked says of every partition what was parked and is gone.
func MissingParked(ctx context.Context, state *mongostate.Database, whole string) ([]string, error) {
	all, err := state.Parked(whole).KeptAside(ctx)
	var missing []string
	for _, kept := range all {
		if kept.Missing() > 0 {
			missing = append(missing, missingText(kept))
		}
	}
	return missing, err
}

// countParked counts the stream's parked changes that were not dealt with.
func (s *Stream) countParked(ctx context.Context) (int64, error) {
	attempt, cancel := context.WithTimeout(ctx, config.AttemptTimeout)
	defer cancel()
	count, err := s.State.Parked(s.whole).Count(attempt)
	if err != nil {
		return 0, fmt.Errorf("count the parked changes of %q: %w", s.whole, err)
	}
	return count, nil
}

// shownParked is the part of the count that this publisher shows: the first
// partition shows that of the whole stream.
func (s *Stream) shownParked(count int64) int64 {
	if s.index > 0 {
		return 0
	}
	return count
}
