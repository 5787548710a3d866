package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/mongostate"
)

// ReadCheckpoint returns a checkpoint, and whether there is one.
func ReadCheckpoint(ctx context.Context, state *mongostate.Database, stream string) (checkpoint.Checkpoint, bool, error) {
	found, err := state.Checkpoints().Read(ctx, stream)
	if errors.Is(err, mongostate.ErrNone) {
		return checkpoint.Checkpoint{Stream: stream}, false, nil
	}
	if err != nil {
		return found, false, fmt.Errorf("read checkpoint %q: %w", stream, err)
	}
	return found, true, nil
}

// knowledge is what this process has seen of its stream's record and checkpoint,
// whoever led. What does not go with it was lost, or restored from a backup. It
// may be used from any goroutine.
type knowledge struct {
	mu        sync.Mutex
	known     bool                // guarded by mu: there was a record
	term      int64               // guarded by mu: the highest that it said
	decidedAt time.Time           // guarded by mu: when an operator had last decided
	place     checkpoint.Place    // guarded by mu: where the checkpoint was
	claimed   *checkpoint.Claimed // guarded by mu: by this process, the last time
}

// kept is what the state database has of a stream.
type kept struct {
	record     checkpoint.Record
	recorded   bool
	checkpoint checkpoint.Checkpoint
	exists     bool
	// claimed is the own claim before that was read, and saved how many of its
	// saves were known to be kept.
	claimed *checkpoint.Claimed
	saved   int64
}

// read reads what the state database has of the stream: the record first, as a
// checkpoint that is read after it is never older.
func (s *Stream) read(ctx context.Context) (kept, error) {
	k := s.knows.before()
	var err error
	k.record, err = s.State.Streams().Read(ctx, s.config.StreamName)
	k.recorded = err == nil
	if err != nil && !errors.Is(err, mongostate.ErrNoStream) {
		return k, err
	}
	k.checkpoint, k.exists, err = ReadCheckpoint(ctx, s.State, s.config.StreamName)
	return k, err
}

// before begins a look: what is read after it is not older.
func (w *knowledge) before() kept {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.claimed == nil {
		return kept{}
	}
	return kept{claimed: w.claimed, saved: w.claimed.Acknowledged()}
}

// contradicts returns why what is kept is not what it was; nil where it may be.
// A decision of an operator makes it new, unless the stream is retired.
func (w *knowledge) contradicts(k kept) *changestream.HaltError {
	if k.record.Retired {
		return halt(changestream.StreamRetired, "stream %q had %d partitions and has another number now", k.record.Stream, k.record.Partitions)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	remedy := ""
	switch {
	case !w.known || k.record.DecidedAt.After(w.decidedAt):
		return nil
	case !k.exists && k.recorded:
		remedy = changestream.NoCheckpoint
	case !k.exists:
		remedy = changestream.NothingLeft
	case !k.checkpoint.Pinned():
		remedy = changestream.NoPlace
	}
	switch {
	case !k.recorded:
		err := halt(changestream.RecordLost, "the stream was in term %d, and is not in streams any more", w.term)
		err.Remedy = remedy
		return err
	case w.term > k.record.Term:
		err := halt(changestream.RecordLost, "stream %q was in term %d, and its record says %d", k.record.Stream, w.term, k.record.Term)
		err.Remedy = remedy
		return err
	case k.claimed != nil && k.exists && k.claimed.WentBack(k.checkpoint, k.saved):
		return halt(changestream.CheckpointBehind, "checkpoint %q is that of term %d after its save %d, and save %d was made",
			k.record.Stream, k.checkpoint.Term, k.checkpoint.Saves, k.saved)
	}
	return nil
}

// note keeps what goes with what was known.
func (w *knowledge) note(k kept) {
	if !k.recorded || w.contradicts(k) != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known, w.term, w.decidedAt = true, k.record.Term, k.record.DecidedAt
	switch {
	case k.exists && k.checkpoint.Pinned():
		w.place = k.checkpoint.Place
	case !w.place.Pinned():
		w.place = k.record.Began.Place // the most that can be missing
	}
}

// claim keeps a claim of this process.
func (w *knowledge) claim(claimed *checkpoint.Claimed, record checkpoint.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known, w.term, w.decidedAt, w.place, w.claimed = true, claimed.Term, record.DecidedAt, claimed.Place, claimed
}

// highest is the highest term that is known to have been given out.
func (w *knowledge) highest() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.term
}

// last is where the stream was last seen; zero where it never was. It is to be
// called by the leading loop, between terms.
func (w *knowledge) last() checkpoint.Place {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.claimed != nil && w.claimed.Term == w.term && w.claimed.Pinned() {
		return w.claimed.Place
	}
	return w.place
}

// Remember looks at what is kept until ctx ends, so that a standby that comes to
// lead knows of what was there before. A leader looks by itself.
func (s *Stream) Remember(ctx context.Context) {
	for wait(ctx, min(s.config.LeaseHeartbeat, lookInterval)) {
		if s.elector.State().Role != lease.Leader {
			s.Look(ctx)
		}
	}
}

// Look looks once. What cannot be read now is not known, and looked at later.
func (s *Stream) Look(ctx context.Context) {
	attempt, cancel := context.WithTimeout(ctx, config.AttemptTimeout)
	defer cancel()
	found, err := s.read(attempt)
	if err != nil {
		s.log.Debug().Err(err).Msg("state of the stream not seen")
		return
	}
	s.knows.note(found)
	s.tracker.Seen(found.record)
	if s.tracker.Aside() != nil {
		s.standAgain(attempt, found)
	}
}

// whileRecorded returns a context that ends when the stream's record is gone, or
// what is kept went back, with that as its cause: nothing else would tell a
// leader that has nothing to save. The returned functions end it with a cause of
// the term's own, and free it.
func (s *Stream) whileRecorded(ctx context.Context) (context.Context, context.CancelCauseFunc, func()) {
	term, end := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		for wait(term, s.config.LeaseHeartbeat) {
			attempt, cancel := context.WithTimeout(term, config.AttemptTimeout)
			found, err := s.read(attempt)
			if err == nil {
				if lost := s.knows.contradicts(found); lost != nil {
					end(lost)
				}
				s.learn(attempt)
			}
			cancel()
		}
	})
	return term, end, func() {
		end(nil)
		watch.Wait()
	}
}

// awaitDecision waits, and looks whether an operator has decided meanwhile, or the
// checkpoint is gone: what the halt says to do may be about it. It returns false when ctx
// ends.
func (s *Stream) awaitDecision(ctx context.Context, timeout time.Duration) bool {
	before, _ := s.attempt(ctx)
	for until := time.Now().Add(timeout); time.Now().Before(until); {
		if !wait(ctx, lookInterval) {
			return false
		}
		found, err := s.attempt(ctx)
		switch {
		case err != nil:
		case found.record.DecidedAt.After(s.decidedAt):
			s.log.Info().Time("decided_at", found.record.DecidedAt).Msg("an operator has decided, claiming a new term")
			return true
		case before.exists && !found.exists:
			s.log.Info().Msg("the checkpoint is gone, looking again")
			return true
		default:
			before = found
		}
	}
	return true
}

// attempt is read within the time of an attempt.
func (s *Stream) attempt(ctx context.Context) (kept, error) {
	attempt, cancel := context.WithTimeout(ctx, config.AttemptTimeout)
	defer cancel()
	return s.read(attempt)
}
