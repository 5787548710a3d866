package stream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/mongostate"
)

const (
	// claimTimeout bounds a claim, which asks for several things one after another, until
	// claims have come to take longer: most of it waits for a majority, each time.
	claimTimeout = 3 * config.AttemptTimeout
	// longestClaim is how long a claim may take at most.
	longestClaim = 12 * claimTimeout
)

// lookInterval is the time between looks for an operator's decision.
const lookInterval = time.Second

// halt is an error that waits for an operator.
func halt(reason changestream.Reason, format string, args ...any) *changestream.HaltError {
	return &changestream.HaltError{Reason: reason, Err: fmt.Errorf(format, args...)}
}

// claim begins a term: it looks whether record, checkpoint and source belong
// together, gives out a term, claims the checkpoint in it, and decides where a
// new stream starts. Whatever does not go together halts the stream, and
// nothing is made anew in its place.
func (s *Stream) claim(ctx context.Context, topic marker) (*checkpoint.Claimed, error) {
	attempt, cancel := context.WithTimeout(ctx, s.claims.Bound())
	defer cancel()
	began := time.Now()
	claimed, err := s.claimWithin(attempt, topic)
	s.claims.Note(time.Since(began), err)
	return claimed, err
}

func (s *Stream) claimWithin(attempt context.Context, topic marker) (*checkpoint.Claimed, error) {
	found, err := s.read(attempt)
	if err != nil {
		return nil, err
	}
	s.decidedAt, s.judged = found.record.DecidedAt, found.record.Confirmed
	source := s.config.Stream(s.Source)
	origin, err := source.Identify(attempt)
	if err != nil {
		return nil, err
	}
	record, err := s.trusted(attempt, found, origin)
	if err != nil {
		return nil, err
	}
	if err := s.first(attempt, topic, record); err != nil {
		return nil, err
	}
	raised, err := s.State.Streams().Raise(attempt, s.config.StreamName, s.knows.highest())
	if err != nil {
		return nil, err
	}
	claimed, err := checkpoint.Claim(attempt, s.State.Checkpoints(), s.config.StreamName, checkpoint.Claimant{
		Owner: s.config.InstanceID, Above: raised.Term - 1, Create: record.Confirmed == 0,
	})
	if errors.Is(err, checkpoint.ErrMissing) {
		return nil, s.missing(record)
	}
	if err != nil {
		return nil, err
	}
	s.judged = claimed.Term
	if err := s.settle(attempt, claimed); err != nil {
		return nil, err
	}
	options, err := source.Fingerprint()
	if err != nil {
		return nil, err
	}
	if err := claimed.Adopt(options); err != nil {
		return nil, &changestream.HaltError{Reason: changestream.OptionsChanged, Err: err}
	}
	if err := s.pin(attempt, claimed, record); err != nil {
		return nil, err
	}
	if err := s.behindClock(attempt, record, claimed.Place); err != nil {
		return nil, err
	}
	if err := s.noteSettings(attempt, claimed, record); err != nil {
		return nil, err
	}
	record.Source, record.Settings = record.Source.With(origin), record.Settings.With(s.config.Identity())
	err = s.State.Streams().Confirm(attempt, s.config.StreamName, claimed.Term, mongostate.Kept{
		Lease: s.wholeLease, Options: options, Source: record.Source, Settings: record.Settings,
	})
	if err != nil {
		return nil, err
	}
	if err := s.State.Lease(s.config.LeaseName).Confirm(attempt, s.holder, claimed.Term); err != nil {
		return nil, err
	}
	s.knows.claim(claimed, record)
	s.record = record
	return claimed, nil
}

// settle settles what was announced for the checkpoint; the first partition settles
// that of retired ones, too, which no term of their own does.
func (s *Stream) settle(ctx context.Context, claimed *checkpoint.Claimed) error {
	err := s.State.Settle(ctx, s.config.StreamName, claimed.Moved, claimed.Term)
	if err != nil || s.index > 0 {
		return err
	}
	return s.State.SettleRetired(ctx, s.whole)
}

// noteSettings writes into the ledger that the stream is sent otherwise from here
// on, and warns of what need not make it another stream.
func (s *Stream) noteSettings(ctx context.Context, claimed *checkpoint.Claimed, record checkpoint.Record) error {
	now := s.config.Identity()
	if noted := record.Changed(now, checkpoint.Noted); len(noted) > 0 {
		text := strings.Join(noted, ", ")
		at := claimed.Time().Time()
		err := s.State.Gaps(s.config.StreamName).Enter(ctx, mongostate.Gap{
			From: string(claimed.Position), FromTime: at, ToTime: at, Cause: string(changestream.SettingsChanged), Error: text, What: text,
			Decision: config.ReportChanged, At: time.Now(), Instance: s.config.InstanceID, Term: claimed.Term,
		})
		if err != nil {
			return err
		}
		s.log.Warn().Strs("changes", noted).Msg("settings of the stream changed, it is sent with them from here on")
	}
	if warned := record.Changed(now, checkpoint.Warned); len(warned) > 0 {
		s.log.Warn().Strs("changes", warned).Msg("settings of the stream changed, it goes on")
	}
	return nil
}

// trusted returns the stream's record when the checkpoint and the source go with
// it. A stream that has neither record nor checkpoint is new, and gets a record;
// one with a checkpoint that is older than records gets one, too.
func (s *Stream) trusted(ctx context.Context, found kept, origin checkpoint.Origin) (checkpoint.Record, error) {
	name := s.config.StreamName
	switch lost := s.knows.contradicts(found); {
	case lost != nil:
		return found.record, lost
	case found.recorded:
		return found.record, s.judge(ctx, found, origin)
	}
	if err := s.routesAsOthers(ctx); err != nil {
		return found.record, err
	}
	if found.exists {
		return s.adopt(ctx, found.checkpoint, origin)
	}
	entered, err := s.ledger().Any(ctx)
	switch {
	case err != nil:
		return found.record, err
	case entered:
		lost := halt(changestream.RecordLost, "stream %q has entries in stream_gaps, and neither a record nor a checkpoint", name)
		lost.Remedy = changestream.NothingLeft
		return found.record, lost
	}
	return s.begin(ctx, origin)
}

// judge returns why the stream must not go on from a checkpoint.
func (s *Stream) judge(ctx context.Context, found kept, origin checkpoint.Origin) error {
	record, kept, exists := found.record, found.checkpoint, found.exists
	switch {
	case record.Confirmed > 0 && !exists:
		return s.missing(record)
	case record.Undecided && exists:
		return halt(changestream.RecordLost, "a command made the record of stream %q anew, and did not end", record.Stream)
	case kept.Term < record.Confirmed:
		return halt(changestream.CheckpointBehind, "checkpoint %q is of term %d, and was claimed in term %d before", record.Stream, kept.Term, record.Confirmed)
	case record.Confirmed > 0 && !kept.Pinned() && !kept.Anew:
		return halt(changestream.CheckpointEmpty, "checkpoint %q says neither where to go on nor that it is to begin anew", record.Stream)
	}
	if err := s.refuseOtherLease(ctx, record); err != nil {
		return err
	}
	if err := s.belongs(ctx, found, origin); err != nil {
		return err
	}
	if others := record.Source.OtherCollections(origin); others != "" {
		err := s.replaced(ctx, record, kept.Place, others)
		if halted, ok := errors.AsType[*changestream.HaltError](err); ok {
			return &misfitError{halted}
		}
		return err
	}
	return nil
}

// refuseOtherSettings halts where the settings make the stream another one than it
// is, or the rest of a copy that of another. A stream that begins anew is what the
// settings say.
func (s *Stream) refuseOtherSettings(record checkpoint.Record, kept checkpoint.Checkpoint) *changestream.HaltError {
	if kept.Anew {
		return nil
	}
	others := record.Changed(s.config.Identity(), checkpoint.Another)
	if kept.Copying() {
		if begun, now := kept.Copy.Order, s.config.CopyOrder(kept.Copy.Since); begun != "" && begun != now {
			others = append(others, fmt.Sprintf("the copy goes along %s, and the settings say %s", begun, now))
		}
		if len(others) > 0 {
			return halt(changestream.CopyChanged, "%s", strings.Join(others, ", "))
		}
	}
	if len(others) > 0 {
		return halt(changestream.SettingsChanged, "%s", strings.Join(others, ", "))
	}
	return nil
}

func (s *Stream) missing(record checkpoint.Record) error {
	return halt(changestream.CheckpointMissing, "checkpoint %q is gone; it was claimed in term %d before", record.Stream, record.Confirmed)
}

// refuseOtherLease halts while the stream is led under a lease of another name:
// two leaders would take its checkpoint from each other for ever.
func (s *Stream) refuseOtherLease(ctx context.Context, record checkpoint.Record) error {
	if record.Lease == s.wholeLease {
		return nil
	}
	name := mongostate.PartitionNames(record.Lease, record.Partitions)[s.index]
	found, err := s.State.Lease(name).Read(ctx)
	if err != nil {
		return fmt.Errorf("read lease %q: %w", name, err)
	}
	if found.Live() && found.Subject == record.Stream {
		return halt(changestream.StreamShared, "%q leads stream %q under LEASE_NAME=%s", found.Holder.ID, record.Stream, record.Lease)
	}
	return nil
}

// keepHalt writes down that an operator is waited for: in the record, so that
// commands on any machine see it, and in the ledger where it is about what the
// state database keeps.
func (s *Stream) keepHalt(ctx context.Context, why error) {
	attempt, cancel := context.WithTimeout(ctx, config.AttemptTimeout)
	defer cancel()
	text := s.Secrets.Text(why.Error())
	err := errors.Join(
		s.State.Streams().Halt(attempt, s.config.StreamName, s.judged, text),
		s.State.Lease(s.config.LeaseName).Halt(attempt, s.holder, max(s.judged, s.knows.highest()), text))
	found, ok := errors.AsType[*changestream.HaltError](why)
	if ok && found.Reason.OfState() {
		kept, readErr := s.read(attempt)
		from := s.lastPlace(kept)
		err = errors.Join(err, readErr, s.State.Gaps(s.config.StreamName).Enter(attempt, mongostate.Gap{
			From: string(from.Position), FromTime: from.Time().Time(), Cause: string(found.Reason), Error: text,
			Decision: config.DecideStop, At: time.Now(), Instance: s.config.InstanceID, Term: max(kept.checkpoint.Term, s.knows.highest()),
		}))
	}
	if err != nil {
		s.log.Error().Err(err).Msg("that publishing is halted could not be written down")
	}
	s.readLedger(attempt)
}

// lastPlace is the place up to which the stream is known to be published: that of
// the checkpoint; where it is gone, the one that this process saw last, or else
// the stream's beginning.
func (s *Stream) lastPlace(found kept) checkpoint.Place {
	if found.exists && found.checkpoint.Pinned() {
		return found.checkpoint.Place
	}
	if last := s.knows.last(); last.Pinned() {
		return last
	}
	return found.record.Began.Place
}
