package stream

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/lease"
)

// misfitError is a halt because this replica's own configuration is not that of the
// stream, as its record and checkpoint have it. Another replica's may be: so it
// leaves the lease to others, and takes it again only when it fits. Where none does,
// each has taken it once, and all wait: nothing goes round among them.
type misfitError struct{ *changestream.HaltError }

func (e *misfitError) Unwrap() error { return e.HaltError }

// misfit reports whether an error is that the configuration is not the stream's.
func misfit(err error) bool {
	_, is := errors.AsType[*misfitError](err)
	return is
}

// fits returns a *misfitError where the configuration is not that of the stream, or
// its collections are others, or its place is after the source's clock: by their ids
// alone nobody can tell whether they were replaced, or the connection string is
// another cluster's. Any other error says that
// this could not be found out.
func (s *Stream) fits(ctx context.Context, found kept, origin checkpoint.Origin) error {
	if err := s.belongs(ctx, found, origin); err != nil {
		return err
	}
	if others := found.record.Source.OtherCollections(origin); others != "" && s.config.OnCollectionChange != config.ReportChanged {
		return &misfitError{halt(changestream.CollectionReplaced, "%s", others)}
	}
	return s.behindClock(ctx, found.record, found.checkpoint.Place)
}

// behindClock returns a *misfitError where a stream's place is after the clock of this
// replica's source: by that alone nobody can tell whether the place is wrong, or the
// connection string is another cluster's. One that was found in the future stays so
// until that is decided: once it is past, what was written before it would be passed
// over.
func (s *Stream) behindClock(ctx context.Context, record checkpoint.Record, place checkpoint.Place) error {
	err := s.refuseFuture(ctx, place)
	if err == nil {
		err = s.refuseOnceFuture(ctx, record, place)
	}
	if halted, ok := errors.AsType[*changestream.HaltError](err); ok {
		return &misfitError{halted}
	}
	return err
}

// refuseOnceFuture halts at a place that a leader has found in the future.
func (s *Stream) refuseOnceFuture(ctx context.Context, record checkpoint.Record, place checkpoint.Place) error {
	found, err := s.State.FoundAhead(ctx, record, place)
	if err != nil || !found {
		return err
	}
	return halt(changestream.PlaceAhead, "the place, %s, was after the source's clock when it was found, and what was written before it is not sent",
		place.Time().Time().Format(time.RFC3339))
}

// belongs returns a *misfitError where the configuration is not that of the stream,
// and another error where that could not be found out.
func (s *Stream) belongs(ctx context.Context, found kept, origin checkpoint.Origin) error {
	if other := found.record.Source.OtherCluster(origin); other != "" {
		return &misfitError{halt(changestream.SourceChanged, "%s", other)}
	}
	if others := s.refuseOtherSettings(found.record, found.checkpoint); others != nil {
		return &misfitError{others}
	}
	if err := s.routesAsOthers(ctx); err != nil {
		return err
	}
	options, err := s.config.Stream(s.Source).Fingerprint()
	if err != nil {
		return err
	}
	if err := found.checkpoint.Under(options); err != nil {
		return &misfitError{&changestream.HaltError{Reason: changestream.OptionsChanged, Err: err}}
	}
	return nil
}

// routesAsOthers returns a *misfitError where another partition's record says that
// the stream's aggregates are shared out in another way: what moves from one to the
// other would be sent by none. A command that was to change all of them did not end.
func (s *Stream) routesAsOthers(ctx context.Context) error {
	if !s.config.Partitioned() {
		return nil
	}
	records, err := s.State.Streams().Of(ctx, s.whole)
	if err != nil {
		return err
	}
	for i := range records {
		other := &records[i]
		if rerouted := other.Rerouted(s.config.Identity()); other.Partitions == s.config.Partitions && len(rerouted) > 0 {
			return &misfitError{halt(changestream.SettingsChanged, "of %q %s", other.Stream, strings.Join(rerouted, ", "))}
		}
	}
	return nil
}

// standAgain lets a replica that stands aside take part again once it fits: the
// record was changed by a command, or by a leader, or the source is the right one.
func (s *Stream) standAgain(ctx context.Context, found kept) {
	origin, err := s.config.Stream(s.Source).Identify(ctx)
	if err != nil {
		s.log.Debug().Err(err).Msg("source not identified, standing aside as before")
		return
	}
	why := s.fits(ctx, found, origin)
	if why != nil && !misfit(why) {
		s.log.Debug().Err(why).Msg("settings not compared with the stream's, standing aside as before")
		return
	}
	s.tracker.StandAside(why)
	if why == nil {
		s.tracker.GapsAre(nil, nil)
		s.log.Info().Msg("the settings are those of the stream, standing for election again")
	}
}

// Aside returns which partitions are left to other instances: those that this one
// stands aside from and, if there are any, those from which it would stand aside by their
// records. A partition from which all instances stand aside is still tried by one.
func Aside(ctx context.Context, parts []*Stream) []int {
	if !slices.ContainsFunc(parts, func(part *Stream) bool { return part.tracker.Aside() != nil }) {
		return nil
	}
	origin, err := parts[0].config.Stream(parts[0].Source).Identify(ctx)
	known := err == nil
	var aside []int
	for i, part := range parts {
		if part.tracker.Aside() != nil || known && part.elector.State().Role != lease.Leader && part.would(ctx, origin) {
			aside = append(aside, i)
		}
	}
	return aside
}

// would reports whether this partition is known to be none that the configuration
// fits, without leading it.
func (s *Stream) would(ctx context.Context, origin checkpoint.Origin) bool {
	found, err := s.read(ctx)
	return err == nil && misfit(s.fits(ctx, found, origin))
}
