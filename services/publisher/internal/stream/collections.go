package stream

import (
	"context"
	"slices"
	"time"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/mongostate"
)

// changed writes down that something happened to a collection as a whole, and
// stops the stream before it where ON_COLLECTION_CHANGE says so. The stream
// calls it before the change is handed out, so before a checkpoint passes it.
func (t *term) changed(ctx context.Context, c changestream.CollectionChange) error {
	if !t.record.Stopped.Before(c.At) && !t.record.Accepted.Before(c.At) {
		t.log.Info().Str("change", c.String()).Msg("change to a collection passed, an operator has accepted it")
		return nil
	}
	replaces := c.Replaces(t.config.Collections())
	stop := t.config.OnCollectionChange == config.StopChanged || replaces && t.config.OnCollectionChange == config.StopReplaced
	gap := mongostate.Gap{
		From: string(c.Position), FromTime: c.At.Time(), Cause: string(changestream.CollectionChanged), Error: c.String(),
		Decision: config.ReportChanged, At: time.Now(), Instance: t.config.InstanceID, Term: t.claimed.Term,
	}
	if replaces {
		gap.Cause = string(changestream.CollectionReplaced)
		gap.Error += ": its documents never pass the stream"
	}
	switch {
	case !t.record.Accepted.Before(c.At): // with the collection as it was found
		gap.Decision, gap.ToTime, stop = mongostate.Accept, c.At.Time(), false
	case stop:
		gap.Decision = config.DecideStop
	default:
		gap.ToTime = c.At.Time()
	}
	attempt, cancel := context.WithTimeout(ctx, config.AttemptTimeout)
	defer cancel()
	if err := t.State.Gaps(t.config.StreamName).Enter(attempt, gap); err != nil {
		return err
	}
	t.readLedger(attempt)
	if stop {
		if err := t.State.Streams().Stop(attempt, t.config.StreamName, c.At); err != nil {
			return err
		}
		return halt(changestream.Reason(gap.Cause), "%s", gap.Error)
	}
	t.log.Error().Str("change", gap.Error).Msg("a collection was changed as a whole, going on as ON_COLLECTION_CHANGE says")
	return t.forget(attempt, c)
}

// forget lets the ids of the changed collections be found anew.
func (t *term) forget(ctx context.Context, c changestream.CollectionChange) error {
	t.learning.Lock()
	defer t.learning.Unlock()
	for name := range t.record.Source.Collections {
		if c.Concerns(name) {
			delete(t.record.Source.Collections, name)
		}
	}
	return t.State.Streams().Source(ctx, t.config.StreamName, t.claimed.Term, t.record.Source)
}

// learn finds the ids of collections that had none when the term began: they were
// made since. It belongs to the leader.
func (s *Stream) learn(ctx context.Context) {
	s.learning.Lock()
	defer s.learning.Unlock()
	known := s.record.Source.Collections
	unknown := slices.DeleteFunc(slices.Clone(s.config.Collections()), func(name string) bool { return known[name] != "" })
	if len(unknown) == 0 && (s.config.Collections() != nil || len(known) > 0) {
		return
	}
	now, err := s.config.Stream(s.Source).Identify(ctx)
	if err != nil {
		s.log.Debug().Err(err).Msg("ids of the collections not seen")
		return
	}
	var learned []string
	for name, id := range now.Collections {
		if known[name] == "" {
			known[name] = id
			learned = append(learned, name)
		}
	}
	if len(learned) == 0 {
		return
	}
	if err := s.State.Streams().Source(ctx, s.config.StreamName, s.knows.highest(), s.record.Source); err != nil {
		s.log.Debug().Err(err).Msg("ids of the collections not kept")
		for _, name := range learned {
			delete(known, name) // and seen again
		}
	}
}

// replaced is what is done when a collection is another one than it was, which
// the stream may not have shown.
func (s *Stream) replaced(ctx context.Context, record checkpoint.Record, place checkpoint.Place, what string) error {
	gap := mongostate.Gap{
		From: string(place.Position), FromTime: place.Time().Time(), Cause: string(changestream.CollectionReplaced), Error: what,
		Decision: config.DecideStop, At: time.Now(), Instance: s.config.InstanceID, Term: record.Confirmed,
	}
	if s.config.OnCollectionChange == config.ReportChanged {
		gap.Decision, gap.ToTime = config.ReportChanged, gap.FromTime
	}
	if err := s.State.Gaps(record.Stream).Enter(ctx, gap); err != nil {
		return err
	}
	if gap.Decision == config.DecideStop {
		return halt(changestream.CollectionReplaced, "%s", what)
	}
	s.log.Error().Str("change", what).Msg("a collection was changed as a whole, going on as ON_COLLECTION_CHANGE says")
	return nil
}
