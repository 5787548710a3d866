package delivery

import (
	"context"
	"errors"
	"time"

	"changerelay/services/projector/internal/session"
)

// writer is the stage that stores what goes on, and notes how far the versions have come:
// behind it, what goes on is stored and none of its versions is missing.
type writer struct {
	store    Store
	observer Observer
	lasting  *lasting
	versions *versions
	skips    *skips
	mending  mending
}

func (w *writer) take(ctx context.Context, b *batch) {
	if len(b.going()) > 0 {
		if err := w.mending.look(ctx); err != nil {
			b.fail(0, err)
			return
		}
	}
	err := w.write(ctx, b)
	for rejected, ok := asRejected(err); ok; rejected, ok = asRejected(err) {
		// What stands before the refused write may not all be stored yet.
		w.skips.refused(b, rejected)
		err = w.write(ctx, b)
	}
	stored := b.end
	if err != nil {
		stored = b.stored()
	}
	unnoted := w.versions.reach(ctx, b.items[:stored])
	switch {
	case unnoted != nil:
		b.fail(0, errors.Join(err, unnoted))
	case err != nil && (ctx.Err() != nil || errors.Is(err, session.ErrPaused)):
		b.fail(stored, err)
	case err != nil:
		w.blame(b, stored, err)
	}
}

// write stores the writes of what goes on.
func (w *writer) write(ctx context.Context, b *batch) error {
	writes := b.going()
	if len(writes) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w.mending.mark(writes)
	err := w.skips.counted(ctx, writes, func() error {
		began := time.Now()
		outcomes, err := w.store.Write(ctx, writes)
		w.observer.Stored(len(writes), time.Since(began))
		b.note(outcomes)
		return err
	})
	if err == nil {
		w.lasting.ok(b.aggregate)
	}
	return err
}

// blame ends the batch before item n for a failure that no write is known to be to
// blame for.
func (w *writer) blame(b *batch, n int, err error) {
	if reason, err := w.lasting.failed(b.aggregate, err); err != nil {
		b.fail(n, err)
	} else {
		b.stop(n, poisoned, reason)
	}
}
