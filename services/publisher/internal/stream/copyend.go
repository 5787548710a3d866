package stream

import (
	"context"
	"fmt"
	"time"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/mongostate"
)

// newCopy is the place of a copy that begins now. The stream that follows it
// begins now, too.
func (s *Stream) newCopy(ctx context.Context, cause string, since time.Time) (checkpoint.Place, error) {
	now, err := changestream.Now(ctx, s.Source)
	if err != nil {
		return checkpoint.Place{}, err
	}
	fresh := &checkpoint.Copy{Cause: cause, Since: since, Order: s.config.CopyOrder(since), BeganAt: time.Now().UTC().Truncate(time.Millisecond)}
	if since.IsZero() {
		collection := s.Source.Database(s.config.SourceDatabase).Collection(s.config.Collections()[0])
		if fresh.Total, err = collection.EstimatedDocumentCount(ctx); err != nil {
			return checkpoint.Place{}, fmt.Errorf("count the documents of %s: %w", collection.Name(), err)
		}
	}
	return checkpoint.Place{Start: now, Copy: fresh}, nil
}

// endCopy lets the stream begin at the time at which the copy began.
func (t *term) endCopy(ctx context.Context) error {
	attempt, cancel := context.WithTimeout(ctx, config.AttemptTimeout)
	defer cancel()
	done := *t.claimed.Copy
	done.Done = true
	if err := t.cutShort(attempt, done); err != nil {
		return err
	}
	if err := t.missingCopy(attempt, done); err != nil {
		return err
	}
	t.log.Info().Int64("copied", done.Copied).Dur("took", time.Since(done.BeganAt)).Msg("copy complete, the stream follows")
	return t.claimed.Move(attempt, checkpoint.Place{Start: t.claimed.Start, Copy: &done})
}

// cutShort returns a halt where the collection is gone, or another one than it was:
// then what the copy took for its end was none. With ON_COLLECTION_CHANGE=report
// that is in the ledger, and the stream goes on.
func (t *term) cutShort(ctx context.Context, done checkpoint.Copy) error {
	stream, name := t.config.Stream(t.Source), t.config.Collections()[0]
	origin, err := stream.Identify(ctx)
	if err != nil {
		return err
	}
	t.learning.Lock()
	was, found := t.record.Source.Collections[name], t.record.Source.OtherCollections(origin)
	t.learning.Unlock()
	if was != "" && origin.Collections[name] == "" {
		exists, known, err := stream.Exists(ctx, name)
		if err != nil {
			return err
		}
		if known && !exists {
			found = fmt.Sprintf("the collection %q had the id %s, now there is none: where it is given its name back the copy goes on", name, was)
		}
	}
	if found == "" {
		return nil
	}
	return t.replaced(ctx, t.record, t.claimed.Place, fmt.Sprintf("%s (copied are %d of about %d documents)", found, done.Copied, done.Total))
}

// missingCopy writes into the ledger that the collection of a copy is not there, or
// not known to be where too little was copied: a name may be wrong.
func (t *term) missingCopy(ctx context.Context, done checkpoint.Copy) error {
	name := t.config.Collections()[0]
	exists, known, err := t.config.Stream(t.Source).Exists(ctx, name)
	if err != nil || exists || !known && done.Copied > 0 && done.Copied >= done.Total {
		return err
	}
	text := "the copy found nothing"
	if done.Copied > 0 {
		text = fmt.Sprintf("the copy ended after %d of about %d documents", done.Copied, done.Total)
	}
	if known {
		text += fmt.Sprintf(": there is no collection %q in the database %q", name, t.config.SourceDatabase)
	} else {
		text += fmt.Sprintf(", and whether there is a collection %q in the database %q may not be seen", name, t.config.SourceDatabase)
	}
	at := t.claimed.Start.Time()
	t.log.Warn().Str("found", text).Msg("copy of a missing collection, look at SOURCE_DATABASE and SOURCE_COLLECTION")
	err = t.State.Gaps(t.config.StreamName).Enter(ctx, mongostate.Gap{
		FromTime: at, ToTime: at, Cause: "copy of a missing collection", Error: text,
		Decision: config.ReportChanged, At: time.Now(), Instance: t.config.InstanceID, Term: t.claimed.Term,
	})
	t.readLedger(ctx)
	return err
}
