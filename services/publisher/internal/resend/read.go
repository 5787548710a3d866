package resend

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"changerelay/services/publisher/internal/relay"
)

// open makes sure that what reads is behind what is saved, and of the collection that
// was selected from: moved says how it is not.
func (r *Runner) open(ctx context.Context, record *Record, behind []byte) (moved string, err error) {
	if r.reader != nil && r.of == record.ID && r.behind == string(behind) {
		return "", nil
	}
	if moved, err = r.moved(ctx, record); err != nil || moved != "" {
		return moved, err
	}
	reader, err := r.deps.Open(record, behind)
	if err != nil {
		return "", fmt.Errorf("open resend %s: %w", record.ID, err)
	}
	r.reader, r.of, r.behind = reader, record.ID, string(behind)
	r.deps.Log.Info().Str("resend", record.ID).Str("group", record.Group).Int64("read", record.Parts[r.part].Read).Msg("resending")
	return "", nil
}

func (r *Runner) moved(ctx context.Context, record *Record) (string, error) {
	asking, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()
	moved, err := r.deps.Moved(asking, record)
	if err != nil {
		return "", fmt.Errorf("look for the collection of resend %s: %w", record.ID, err)
	}
	return moved, nil
}

// read reads a chunk that has all that was handed on before: see the package. The error
// is ErrNone where the resend is not to go on, however long the source takes.
func (r *Runner) read(ctx context.Context, record *Record) ([]relay.Change, error) {
	behind := r.beside.keep()
	asking, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()
	now, err := r.deps.Now(asking)
	if err != nil {
		return nil, err
	}
	if now.Before(behind) {
		now = behind
	}
	r.beside.keepFrom(now)
	r.reader.From(now)
	reading, stop := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { r.watch(reading, record, stop) })
	batch, err := r.reader.Read(reading)
	stop(nil)
	watching.Wait()
	if why := context.Cause(reading); errors.Is(why, ErrNone) {
		return nil, why
	}
	if err == nil && len(batch.Changes) == 0 {
		err = errNothing
	}
	return batch.Changes, err
}

// watch looks until ctx ends whether a resend is to go on, and stops what is read where it
// is not. A look that fails is none: what is read is not saved without the same store.
func (r *Runner) watch(ctx context.Context, record *Record, stop context.CancelCauseFunc) {
	ticks := time.NewTicker(lookInterval)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
		if err := r.goesOn(ctx, record); errors.Is(err, ErrNone) {
			stop(err)
			return
		}
	}
}

// errNothing is a chunk without a document, which is no end.
var errNothing = errors.New("nothing was read, and that is not the end")
