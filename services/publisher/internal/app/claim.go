package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/mongostate"
)

// claimTimeout bounds a claim, which asks for several things one after another.
const claimTimeout = 3 * attemptTimeout

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
func (a *App) claim(ctx context.Context, topic marker) (*checkpoint.Claimed, error) {
	attempt, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	found, err := a.read(attempt)
	if err != nil {
		return nil, err
	}
	a.decidedAt, a.judged = found.record.DecidedAt, found.record.Confirmed
	source := a.config.stream(a.source)
	origin, err := source.Identify(attempt)
	if err != nil {
		return nil, err
	}
	record, err := a.trusted(attempt, found, origin)
	if err != nil {
		return nil, err
	}
	if err := a.first(attempt, topic, record); err != nil {
		return nil, err
	}
	raised, err := a.state.Streams().Raise(attempt, a.config.StreamName, a.knows.highest())
	if err != nil {
		return nil, err
	}
	claimed, err := checkpoint.Claim(attempt, a.state.Checkpoints(), a.config.StreamName, checkpoint.Claimant{
		Owner: a.config.InstanceID, Above: raised.Term - 1, Create: record.Confirmed == 0,
	})
	if errors.Is(err, checkpoint.ErrMissing) {
		return nil, a.missing(record)
	}
	if err != nil {
		return nil, err
	}
	a.judged = claimed.Term
	if err := a.state.Settle(attempt, a.config.StreamName, claimed.Moved, claimed.Term); err != nil {
		return nil, err
	}
	options, err := source.Fingerprint()
	if err != nil {
		return nil, err
	}
	if err := claimed.Adopt(options); err != nil {
		return nil, &changestream.HaltError{Reason: changestream.OptionsChanged, Err: err}
	}
	if err := a.pin(attempt, claimed, record); err != nil {
		return nil, err
	}
	if err := a.refuseFuture(attempt, claimed.Place); err != nil {
		return nil, err
	}
	if err := a.noteSettings(attempt, claimed, record); err != nil {
		return nil, err
	}
	record.Source, record.Settings = record.Source.With(origin), record.Settings.With(a.config.identity())
	err = a.state.Streams().Confirm(attempt, a.config.StreamName, claimed.Term, mongostate.Kept{
		Lease: a.wholeLease, Options: options, Source: record.Source, Settings: record.Settings,
	})
	if err != nil {
		return nil, err
	}
	if err := a.state.Lease(a.config.LeaseName).Halt(attempt, a.holder, ""); err != nil {
		return nil, err
	}
	a.knows.claim(claimed, record)
	a.record = record
	return claimed, nil
}

// noteSettings writes into the ledger that the stream is sent otherwise from here
// on, and warns of what need not make it another stream.
func (a *App) noteSettings(ctx context.Context, claimed *checkpoint.Claimed, record checkpoint.Record) error {
	now := a.config.identity()
	if noted := record.Settings.Changed(now, checkpoint.Noted); len(noted) > 0 {
		text := strings.Join(noted, ", ")
		at := claimed.Time().Time()
		err := a.state.Gaps(a.config.StreamName).Enter(ctx, mongostate.Gap{
			From: string(claimed.Position), FromTime: at, ToTime: at, Cause: string(changestream.SettingsChanged), Error: text, What: text,
			Decision: reportChanged, At: time.Now(), Instance: a.config.InstanceID, Term: claimed.Term,
		})
		if err != nil {
			return err
		}
		a.log.Warn().Strs("changes", noted).Msg("settings of the stream changed, it is sent with them from here on")
	}
	if warned := record.Settings.Changed(now, checkpoint.Warned); len(warned) > 0 {
		a.log.Warn().Strs("changes", warned).Msg("settings of the stream changed, it goes on")
	}
	return nil
}

// trusted returns the stream's record when the checkpoint and the source go with
// it. A stream that has neither record nor checkpoint is new, and gets a record;
// one with a checkpoint that is older than records gets one, too.
func (a *App) trusted(ctx context.Context, found kept, origin checkpoint.Origin) (checkpoint.Record, error) {
	name := a.config.StreamName
	switch lost := a.knows.contradicts(found); {
	case lost != nil:
		return found.record, lost
	case found.recorded:
		return found.record, a.judge(ctx, found, origin)
	case found.exists:
		return a.adopt(ctx, found.checkpoint, origin)
	}
	entered, err := a.ledger().Any(ctx)
	switch {
	case err != nil:
		return found.record, err
	case entered:
		lost := halt(changestream.RecordLost, "stream %q has entries in stream_gaps, and neither a record nor a checkpoint", name)
		lost.Remedy = changestream.NothingLeft
		return found.record, lost
	}
	return a.begin(ctx, origin)
}

// judge returns why the stream must not go on from a checkpoint.
func (a *App) judge(ctx context.Context, found kept, origin checkpoint.Origin) error {
	record, kept, exists := found.record, found.checkpoint, found.exists
	switch {
	case record.Confirmed > 0 && !exists:
		return a.missing(record)
	case kept.Term < record.Confirmed:
		return halt(changestream.CheckpointBehind, "checkpoint %q is of term %d, and was claimed in term %d before", record.Stream, kept.Term, record.Confirmed)
	case record.Confirmed > 0 && !kept.Pinned() && !kept.Anew:
		return halt(changestream.CheckpointEmpty, "checkpoint %q says neither where to go on nor that it is to begin anew", record.Stream)
	}
	if err := a.refuseOtherLease(ctx, record); err != nil {
		return err
	}
	if err := a.fits(record, kept, origin); err != nil {
		return err
	}
	if others := record.Source.OtherCollections(origin); others != "" {
		return a.replaced(ctx, record, kept.Place, others)
	}
	return nil
}

// refuseOtherSettings halts where the settings make the stream another one than it
// is, or the rest of a copy that of another. A stream that begins anew is what the
// settings say.
func (a *App) refuseOtherSettings(record checkpoint.Record, kept checkpoint.Checkpoint) *changestream.HaltError {
	if kept.Anew {
		return nil
	}
	others := record.Settings.Changed(a.config.identity(), checkpoint.Another)
	if kept.Copying() {
		if begun, now := kept.Copy.Order, a.config.copyOrder(kept.Copy.Since); begun != "" && begun != now {
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

func (a *App) missing(record checkpoint.Record) error {
	return halt(changestream.CheckpointMissing, "checkpoint %q is gone; it was claimed in term %d before", record.Stream, record.Confirmed)
}

// refuseOtherLease halts while the stream is led under a lease of another name:
// two leaders would take its checkpoint from each other for ever.
func (a *App) refuseOtherLease(ctx context.Context, record checkpoint.Record) error {
	if record.Lease == a.wholeLease {
		return nil
	}
	name := mongostate.PartitionNames(record.Lease, record.Partitions)[a.index]
	found, err := a.state.Lease(name).Read(ctx)
	if err != nil {
		return fmt.Errorf("read lease %q: %w", name, err)
	}
	if found.Live() && found.Subject == record.Stream {
		return halt(changestream.StreamShared, "%q leads stream %q under LEASE_NAME=%s", found.Holder.ID, record.Stream, record.Lease)
	}
	return nil
}

// adopt makes the record of a stream that is older than records. A checkpoint that
// was claimed beside a record, or of a stream whose beginning is in the ledger, is
// none of such a stream: its record, with the settings that it is of, was lost.
func (a *App) adopt(ctx context.Context, kept checkpoint.Checkpoint, origin checkpoint.Origin) (checkpoint.Record, error) {
	if !kept.Pinned() && !kept.Anew || kept.Retired {
		return checkpoint.Record{}, halt(changestream.CheckpointEmpty, "checkpoint %q has no place, and there is no record of its stream", kept.Stream)
	}
	begun, err := a.ledger().Begun(ctx)
	switch {
	case err != nil:
		return checkpoint.Record{}, err
	case kept.Claim != "", begun:
		return checkpoint.Record{}, halt(changestream.RecordLost, "checkpoint %q is in term %d, and the record that its stream had is not in streams any more", kept.Stream, kept.Term)
	}
	record := a.newRecord(checkpoint.Adopted, kept.Place, origin)
	record.Term, record.Confirmed = kept.Term, kept.Term
	opened, err := a.state.Streams().Open(ctx, record)
	if err == nil {
		a.log.Info().Int64("term", kept.Term).Str("position", string(kept.Position)).Msg("record of the stream made from its checkpoint")
	}
	return opened, err
}

// begin makes the record of a new stream. The place at which it begins is in
// there before anything else is made, so it is decided once.
func (a *App) begin(ctx context.Context, origin checkpoint.Origin) (checkpoint.Record, error) {
	place, present, err := a.beginning(ctx)
	if err != nil {
		return checkpoint.Record{}, noRecordYet(err)
	}
	record := a.newRecord(a.config.StartAt, place, origin)
	record.Began.Present = present
	record.Alone = place.Copy == nil && record.Began.Present != 0
	return a.state.Streams().Open(ctx, record)
}

// beginning is where a new stream begins, and how many documents it leaves out.
// Partitions that begin now begin where the first of them did: the changes that
// come between would be left out by all that begin later.
func (a *App) beginning(ctx context.Context) (place checkpoint.Place, present int64, err error) {
	if a.index > 0 && a.config.StartAt == startNow {
		first, err := a.firstPartition(ctx)
		return checkpoint.Place{Start: first.Began.Place.Time()}, first.Began.Present, err
	}
	place, err = a.firstStart(ctx)
	if err != nil {
		return place, 0, err
	}
	return place, a.present(ctx), nil
}

// noRecordYet says what to do about a first start that is refused: there is
// nothing yet that a command could decide about.
func noRecordYet(err error) error {
	if halted, ok := errors.AsType[*changestream.HaltError](err); ok && halted.Reason == changestream.PlaceAhead {
		halted.Remedy = "nothing would be read until then: correct START_AT, and start again"
	}
	return err
}

func (a *App) newRecord(how string, place checkpoint.Place, origin checkpoint.Origin) checkpoint.Record {
	return checkpoint.Record{
		Stream: a.config.StreamName, Whole: a.parkedAs, Lease: a.wholeLease, Partitions: a.config.Partitions, Source: origin, Settings: a.config.identity(),
		Began: checkpoint.Beginning{How: how, Place: place, Present: -1, At: time.Now().UTC(), By: a.config.InstanceID},
	}
}

// pin decides where the stream starts, unless that is decided, and writes it in
// the ledger first.
func (a *App) pin(ctx context.Context, claimed *checkpoint.Claimed, record checkpoint.Record) error {
	if claimed.Pinned() {
		return nil
	}
	began, cause := record.Began, "first start"
	if claimed.Anew {
		place, err := a.firstStart(ctx)
		if err != nil {
			return err
		}
		began = checkpoint.Beginning{How: a.config.StartAt, Place: place, Present: a.present(ctx)}
		cause = "checkpoint reset"
	}
	if !began.Place.Pinned() {
		return halt(changestream.CheckpointEmpty, "the record of stream %q has no place either: a command made it that did not end", record.Stream)
	}
	err := a.state.Gaps(a.config.StreamName).Enter(ctx, mongostate.Gap{
		FromTime: record.DecidedAt, ToTime: began.Place.Time().Time(), Cause: cause, Decision: mongostate.Began,
		Error: began.Skipped(), At: time.Now(), Instance: a.config.InstanceID, Term: claimed.Term,
	})
	if err != nil {
		return err
	}
	if claimed.Anew {
		if err := a.state.Gaps(a.config.StreamName).GoOn(ctx, mongostate.Reset, began.Place.Time().Time()); err != nil {
			return err
		}
	}
	if err := claimed.Pin(ctx, began.Place); err != nil {
		return err
	}
	event := a.log.Info()
	if began.Skipped() != "" {
		event = a.log.Warn().Int64("documents", began.Present)
	}
	event.Uint32("seconds", claimed.Start.Seconds).Uint32("increment", claimed.Start.Increment).Str("start_at", began.How).
		Msg("start of the stream pinned, what was written before is sent only where a copy was asked for")
	return nil
}

// firstStart is where START_AT says that a stream without a checkpoint begins.
func (a *App) firstStart(ctx context.Context) (checkpoint.Place, error) {
	at, err := a.config.startTime()
	switch {
	case err != nil:
		return checkpoint.Place{}, fmt.Errorf("read START_AT: %w", err)
	case a.config.StartAt == startSnapshot:
		return a.newCopy(ctx, "START_AT=snapshot", time.Time{})
	case !at.IsZero():
		place := checkpoint.Place{Start: checkpoint.ClusterTime{Seconds: uint32(at.Unix())}}
		return place, a.refuseFuture(ctx, place)
	}
	now, err := changestream.Now(ctx, a.source)
	return checkpoint.Place{Start: now}, err
}

// refuseFuture halts at a place after the source's clock: a stream that waits
// there passes over all that is written until then.
func (a *App) refuseFuture(ctx context.Context, place checkpoint.Place) error {
	now, err := changestream.Latest(ctx, a.source)
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
func (a *App) present(ctx context.Context) int64 {
	if a.config.collections() == nil {
		return -1 // counting a database takes a right that nothing else needs
	}
	total := int64(0)
	for _, name := range a.config.collections() {
		count, err := a.source.Database(a.config.SourceDatabase).Collection(name).EstimatedDocumentCount(ctx)
		if err != nil {
			a.log.Warn().Err(err).Msg("documents of the source not counted")
			return -1
		}
		total += count
	}
	if total == 0 && !a.empty(ctx) {
		return -1
	}
	return total
}

// keepHalt writes down that an operator is waited for: in the record, so that
// commands on any machine see it, and in the ledger where it is about what the
// state database keeps.
func (a *App) keepHalt(ctx context.Context, why error) {
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	text := a.secrets.Text(why.Error())
	err := errors.Join(
		a.state.Streams().Halt(attempt, a.config.StreamName, a.judged, text),
		a.state.Lease(a.config.LeaseName).Halt(attempt, a.holder, text))
	found, ok := errors.AsType[*changestream.HaltError](why)
	if ok && found.Reason.OfState() {
		kept, readErr := a.read(attempt)
		from := a.lastPlace(kept)
		err = errors.Join(err, readErr, a.state.Gaps(a.config.StreamName).Enter(attempt, mongostate.Gap{
			From: string(from.Position), FromTime: from.Time().Time(), Cause: string(found.Reason), Error: text,
			Decision: decideStop, At: time.Now(), Instance: a.config.InstanceID, Term: max(kept.checkpoint.Term, a.knows.highest()),
		}))
	}
	if err != nil {
		a.log.Error().Err(err).Msg("that publishing is halted could not be written down")
	}
	a.readLedger(attempt)
}

// lastPlace is the place up to which the stream is known to be published: that of
// the checkpoint; where it is gone, the one that this process saw last, or else
// the stream's beginning.
func (a *App) lastPlace(found kept) checkpoint.Place {
	if found.exists && found.checkpoint.Pinned() {
		return found.checkpoint.Place
	}
	if last := a.knows.last(); last.Pinned() {
		return last
	}
	return found.record.Began.Place
}
