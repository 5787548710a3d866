package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/publisher/internal/backoff"
	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/servicebus"
)

// marker is a topic that counts who begins in it.
type marker interface {
	// Mark leaves a mark that every later one comes after, and returns how many
	// messages and marks there are with it; so it does with an error that wraps
	// servicebus.ErrMarkStays.
	Mark(ctx context.Context) (int64, error)
}

// made is a mark that this process has left.
type made struct {
	begun time.Time // when its stream began, as the record says
	count int64     // messages and marks with it, by its topic
}

// first has a new stream that leaves out what the source has mark its topic
// before it begins, and halts it where it is not the first there: another one,
// of which the state database knows nothing, may have a backlog, and everything
// in that would come after what this one sends.
func (s *Stream) first(ctx context.Context, topic marker, record checkpoint.Record) error {
	switch {
	case record.Marked || !record.Alone:
		return nil
	case s.index > 0:
		return s.markedByFirst(ctx, record)
	}
	count, tries, err := s.mark(ctx, topic, record)
	if err != nil {
		return fmt.Errorf("begin stream %q: %w", record.Stream, err)
	}
	if count > 1 {
		return s.taken(record, count-1, tries-1)
	}
	return s.State.Streams().Mark(ctx, record.Stream, 0)
}

// mark leaves a mark of the stream, unless this process has left it, and returns
// its count, and how often the stream was to be marked, this time included. What
// fails behind a mark leaves it known, so that the next try is not behind its own.
func (s *Stream) mark(ctx context.Context, topic marker, record checkpoint.Record) (count, tries int64, err error) {
	if s.made.count > 0 && s.made.begun.Equal(record.Began.At) {
		return s.made.count, record.Marks, nil
	}
	if tries, err = s.State.Streams().Marking(ctx, record.Stream); err != nil {
		return 0, tries, err
	}
	count, err = topic.Mark(ctx)
	if errors.Is(err, servicebus.ErrMarkStays) {
		s.log.Warn().Err(err).Msg("mark not taken back, it is delivered in twenty years")
		err = nil
	}
	if err == nil {
		s.made = made{begun: record.Began.At, count: count}
	}
	return count, tries, err
}

// taken is the halt of a stream before which its topic has had messages or marks.
// As many of them may be its own as it was to be marked before: by a publisher
// that died, or lost the answer, before it had written down that it was the first.
func (s *Stream) taken(record checkpoint.Record, before, tries int64) error {
	own := ""
	if tries > 0 {
		own = fmt.Sprintf(", of which %d may be its own marks, left by a publisher that ended before it could write that down", min(before, tries))
	}
	return halt(changestream.TopicTaken, "stream %q is new in the state database %q, where it is to begin at %s, and the topic %q has had %d messages or marks%s",
		record.Stream, s.config.StateDatabase, record.Began.Place.Time().Time().Format(time.RFC3339), s.config.ServiceBusTopic, before, own)
}

// markAside has a stream that need not be the first mark its topic all the same,
// for others that begin there, while it publishes. The returned function ends
// that and waits for it. One that begins with a copy is marked before it sends,
// where that works at once: its own messages are none that were there before.
func (s *Stream) markAside(ctx context.Context, topic marker) func() {
	ctx, cancel := context.WithCancel(ctx)
	var marking sync.WaitGroup
	if !s.record.Marked && !s.record.Alone && s.index == 0 {
		if s.record.Began.Place.Copy == nil || s.markBegun(ctx, topic) != nil {
			marking.Go(func() { s.markUntilDone(ctx, topic) })
		}
	}
	return func() {
		cancel()
		marking.Wait()
	}
}

func (s *Stream) markUntilDone(ctx context.Context, topic marker) {
	retry := backoff.Backoff{Initial: time.Second, Max: time.Minute}
	for s.markBegun(ctx, topic) != nil {
		if !wait(ctx, retry.Next()) {
			return
		}
	}
}

// markBegun marks the topic of a stream that has begun, and notes how many messages
// or marks it has had before. Where it was to be marked before that, a copy may have
// sent since, and they may be its own.
func (s *Stream) markBegun(ctx context.Context, topic marker) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.SendTimeout)
	defer cancel()
	count, tries, err := s.mark(ctx, topic, s.record)
	behind := max(count-max(tries, 1), 0) // what may be its own marks is not others'
	if s.record.Began.Place.Copy != nil && tries > 1 {
		behind = 0
	}
	if err == nil {
		err = s.State.Streams().Mark(ctx, s.config.StreamName, behind)
	}
	if err != nil {
		s.log.Debug().Err(err).Msg("topic not marked, trying again")
		return err
	}
	if text := s.config.BeganBehind(s.record.Began, behind); text != "" {
		s.log.Warn().Str("found", text).Msg("first start behind other messages, look whether the source ever was published")
	}
	return nil
}

// errFirstUnmarked is why a partition does not begin yet.
var errFirstUnmarked = errors.New("the first partition has not begun yet")

// firstPartition is the record of the first partition, whose beginning is that of
// all; an error where there is none yet.
func (s *Stream) firstPartition(ctx context.Context) (checkpoint.Record, error) {
	name := mongostate.PartitionNames(s.whole, s.config.Partitions)[0]
	first, err := s.State.Streams().Read(ctx, name)
	if errors.Is(err, mongostate.ErrNoStream) {
		err = fmt.Errorf("begin stream %q: %w: %q", s.config.StreamName, errFirstUnmarked, name)
	}
	return first, err
}

// markedByFirst lets another partition than the first begin: the first marks the
// topic for all of them.
func (s *Stream) markedByFirst(ctx context.Context, record checkpoint.Record) error {
	first, err := s.firstPartition(ctx)
	switch {
	case err != nil:
		return err
	case first.Marked:
		return nil
	case first.Halt != "":
		return halt(changestream.TopicTaken, "stream %q is halted", first.Stream)
	}
	return fmt.Errorf("begin stream %q: %w: %q", record.Stream, errFirstUnmarked, first.Stream)
}

// empty reports whether the source is known to hold no document.
func (s *Stream) empty(ctx context.Context) bool {
	for _, name := range s.config.Collections() {
		err := s.Source.Database(s.config.SourceDatabase).Collection(name).FindOne(ctx, bson.D{}).Err()
		if !errors.Is(err, mongo.ErrNoDocuments) {
			return false
		}
	}
	return true
}
