package app

import (
	"context"
	"errors"
	"time"

	"changerelay/services/projector/internal/rebuild"
)

// recordsEvery is how often it is looked whether a rebuild has begun or gone on.
const recordsEvery = time.Second

// ChangedError means that the records of rebuilds are not those that a projector works
// by.
type ChangedError struct{ Records rebuild.Records }

func (*ChangedError) Error() string { return "the records of rebuilds have changed" }

// Keep runs projectors, made by a function of the records of rebuilds, one after
// another until ctx ends: each works by one state of the records from its start to its
// end.
func Keep(ctx context.Context, build func(rebuild.Records) (*App, error)) error {
	var records rebuild.Records
	for {
		a, err := build(records)
		if err != nil {
			return err
		}
		err = a.Run(ctx)
		changed, is := errors.AsType[*ChangedError](err)
		switch {
		case is && ctx.Err() != nil:
			return nil
		case !is:
			return err
		}
		a.log.Info().Str("works_by", changed.Records.Signature(a.declared)).Msg("a rebuild has begun or gone on, beginning anew")
		records = changed.Records
	}
}

// keepRecords looks at the records until ctx ends, or until they are others than those
// that the projector works by. What cannot be read is looked at again.
func (a *App) keepRecords(ctx context.Context) error {
	ticker := time.NewTicker(recordsEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := a.checkRecords(ctx); err != nil && lasts(err) {
			return err
		}
	}
}

// checkRecords is a *ChangedError where the records are others than those that the
// projector works by, and rebuild.ErrTaken where it cannot work by them. It notes of a
// rebuild under way that its projection has changed.
func (a *App) checkRecords(ctx context.Context) error {
	records, err := a.store.Rebuilds(ctx)
	if err != nil {
		return err
	}
	if records.Signature(a.declared) != a.works {
		return &ChangedError{records}
	}
	if _, err := records.Versions(a.declared); err != nil {
		return err
	}
	for _, r := range records.Outdated(a.declared) {
		if err := a.store.Outdate(ctx, &r); err != nil {
			return err
		}
		a.log.Warn().Str("projection", r.Projection).Int("version", r.Next).
			Msg("the projection has changed since its rebuild began, which will not come to its end so: see projector rebuild")
	}
	return nil
}
