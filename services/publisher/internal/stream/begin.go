package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/mongostate"
)

// Adoptable returns a halt unless a checkpoint without a record is of a stream that is
// older than records. A checkpoint that was claimed beside a record, or whose stream has
// its beginning in the ledger, had a record, which kept the stream's settings.
func Adoptable(ctx context.Context, ledger *mongostate.Gaps, kept checkpoint.Checkpoint) error {
	if !kept.Pinned() && !kept.Anew || kept.Retired {
		return halt(changestream.CheckpointEmpty, "checkpoint %q has no place, and there is no record of its stream", kept.Stream)
	}
	begun, err := ledger.Begun(ctx)
	switch {
	case err != nil:
		return err
	case kept.Claim != "", begun:
		return halt(changestream.RecordLost, "checkpoint %q is in term %d, and the record that its stream had is not in streams any more", kept.Stream, kept.Term)
	}
	return nil
}

// adopt makes the record of a stream that is older than records.
func (s *Stream) adopt(ctx context.Context, kept checkpoint.Checkpoint, origin checkpoint.Origin) (checkpoint.Record, error) {
	if err := Adoptable(ctx, s.ledger(), kept); err != nil {
		return checkpoint.Record{}, err
	}
	record := s.newRecord(checkpoint.Adopted, kept.Place, origin)
	record.Term, record.Confirmed = kept.Term, kept.Term
	opened, err := s.State.Streams().Open(ctx, record)
	if err == nil {
		s.log.Info().Int64("term", kept.Term).Str("position", string(kept.Position)).Msg("record of the stream made from its checkpoint")
	}
	return opened, err
}

// begin makes the record of a new stream. The place at which it begins is in
// there before anything else is made, so it is decided once.
func (s *Stream) begin(ctx context.Context, origin checkpoint.Origin) (checkpoint.Record, error) {
	place, present, err := s.beginning(ctx)
	if err != nil {
		return checkpoint.Record{}, noRecordYet(err)
	}
	record := s.newRecord(s.config.StartAt, place, origin)
	record.Began.Present = present
	record.Alone = place.Copy == nil && record.Began.Present != 0
	return s.State.Streams().Open(ctx, record)
}

// beginning is where a new stream begins, and how many documents it leaves out.
// Partitions that begin now begin where the first of them did: the changes that
// come between would be left out by all that begin later.
func (s *Stream) beginning(ctx context.Context) (place checkpoint.Place, present int64, err error) {
	if s.index > 0 && s.config.StartAt == config.StartNow {
		first, err := s.firstPartition(ctx)
		return checkpoint.Place{Start: first.Began.Place.Time()}, first.Began.Present, err
	}
	place, err = s.firstStart(ctx)
	if err != nil {
		return place, 0, err
	}
	return place, s.present(ctx), nil
}

// noRecordYet says what to do about a first start that is refused: there is
// nothing yet that a command could decide about.
func noRecordYet(err error) error {
	if halted, ok := errors.AsType[*changestream.HaltError](err); ok && halted.Reason == changestream.PlaceAhead {
		halted.Remedy = "nothing would be read until then: correct START_AT, and start again"
	}
	return err
}

func (s *Stream) newRecord(how string, place checkpoint.Place, origin checkpoint.Origin) checkpoint.Record {
	return checkpoint.Record{
		Stream: s.config.StreamName, Whole: s.whole, Lease: s.wholeLease, Partitions: s.config.Partitions, Source: origin, Settings: s.config.Identity(),
		Began: checkpoint.Beginning{How: how, Place: place, Present: -1, At: time.Now().UTC(), By: s.config.InstanceID},
	}
}

// pin decides where the stream starts, unless that is decided, and writes it in
// the ledger first.
func (s *Stream) pin(ctx context.Context, claimed *checkpoint.Claimed, record checkpoint.Record) error {
	if claimed.Pinned() {
		return nil
	}
	began, cause, since := record.Began, "first start", record.DecidedAt
	if claimed.Anew {
		place, err := s.firstStart(ctx)
		if err != nil {
			return err
		}
		began = checkpoint.Beginning{How: s.config.StartAt, Place: place, Present: s.present(ctx)}
		cause, since = "checkpoint reset", claimed.UpdatedAt // a command that died has decided nothing else
	}
	if !began.Place.Pinned() {
		return halt(changestream.CheckpointEmpty, "the record of stream %q has no place either: a command made it that did not end", record.Stream)
	}
	err := s.State.Gaps(s.config.StreamName).Enter(ctx, mongostate.Gap{
		FromTime: since, ToTime: began.Place.Time().Time(), Cause: cause, Decision: mongostate.Began,
		Error: began.Skipped(), At: time.Now(), Instance: s.config.InstanceID, Term: claimed.Term,
	})
	if err != nil {
		return err
	}
	if claimed.Anew {
		if err := s.State.Gaps(s.config.StreamName).GoOn(ctx, mongostate.Reset, began.Place.Time().Time()); err != nil {
			return err
		}
	}
	if err := claimed.Pin(ctx, began.Place); err != nil {
		return err
	}
	event := s.log.Info()
	if began.Skipped() != "" {
		event = s.log.Warn().Int64("documents", began.Present)
	}
	event.Uint32("seconds", claimed.Start.Seconds).Uint32("increment", claimed.Start.Increment).Str("start_at", began.How).
		Msg("start of the stream pinned, what was written before is sent only where a copy was asked for")
	return nil
}

// firstStart is where START_AT says that a stream without a checkpoint begins.
func (s *Stream) firstStart(ctx context.Context) (checkpoint.Place, error) {
	at, err := s.config.StartTime()
	switch {
	case err != nil:
		return checkpoint.Place{}, fmt.Errorf("read START_AT: %w", err)
	case s.config.StartAt == config.StartSnapshot:
		return s.newCopy(ctx, "START_AT=snapshot", time.Time{})
	case !at.IsZero():
		place := checkpoint.Place{Start: checkpoint.ClusterTime{Seconds: uint32(at.Unix())}}
		return place, s.refuseFuture(ctx, place)
	}
	now, err := changestream.Now(ctx, s.Source)
	return checkpoint.Place{Start: now}, err
}

// refuseFuture halts at a place after the source's clock: a stream that waits
// there passes over all that is written until then.
func (s *Stream) refuseFuture(ctx context.Context, place checkpoint.Place) error {
	now, err := changestream.Latest(ctx, s.Source)
	if err != nil {
		return err
	}
	if now.Before(place.Time()) {
		return halt(changestream.PlaceAhead, "the place is %s, the source's clock %s",
			place.Time().Time().Format(time.RFC3339), now.Time().Format(time.RFC3339))
	}
	return nil
}

// present counts the documents that the source has; -1 where that is not known.
func (s *Stream) present(ctx context.Context) int64 {
	if s.config.Collections() == nil {
		return -1 // counting a database takes a right that nothing else needs
	}
	total := int64(0)
	for _, name := range s.config.Collections() {
		count, err := s.Source.Database(s.config.SourceDatabase).Collection(name).EstimatedDocumentCount(ctx)
		if err != nil {
			s.log.Warn().Err(err).Msg("documents of the source not counted")
			return -1
		}
		total += count
	}
	if total == 0 && !s.empty(ctx) {
		return -1
	}
	return total
}
