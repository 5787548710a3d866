package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/rebuild"
)

// actingTime bounds what a command does while it has a record for itself, from before it
// has it: well below the time for which it has it.
const actingTime = 20 * time.Second

// acting does something in that time.
func acting(ctx context.Context, since time.Time, act func(ctx context.Context) error) error {
	ctx, cancel := context.WithDeadline(ctx, since.Add(actingTime))
	defer cancel()
	return act(ctx)
}

// errUnderWay means that a rebuild decides what readers see.
var errUnderWay = errors.New("not while the projection is rebuilt")

// unbuilt is errUnderWay where records are of a rebuild that is under way.
func unbuilt(records rebuild.Records) error {
	for i := range records {
		if r := &records[i]; r.Next != 0 {
			return fmt.Errorf("%w: version %d is %s beside version %d: projector rebuild --projection %s goes on, and switches to it once it has everything; with --cancel it leads back to version %d",
				errUnderWay, r.Next, r.State, r.Current, r.Projection, r.Current)
		}
	}
	return nil
}

// alone changes what readers see of a projection while its records, which are as the
// command has read them, are for this command alone.
func (s *scope) alone(ctx context.Context, v *projection.Version, change func(ctx context.Context) error) error {
	records, since := s.records.Under(v), time.Now()
	for i := range records {
		var err error
		if records[i], err = s.store.Hold(ctx, records[i]); err != nil {
			return err
		}
	}
	stored, err := s.store.Rebuilds(ctx)
	if err != nil {
		return err
	}
	if len(stored.Under(v)) != len(records) {
		return readmodel.ErrRevised
	}
	if err := acting(ctx, since, change); err != nil {
		return err
	}
	for i := range records {
		err := s.store.Revise(ctx, records[i], records[i].Noted())
		if errors.Is(err, readmodel.ErrRevised) {
			err = errors.Join(err, s.putRight(ctx, v.Other(records[i].Declared)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// putRight has readers see what the stored record of a declared version says, once no
// other command has it for itself.
func (s *scope) putRight(ctx context.Context, declared *projection.Version) error {
	ticker := time.NewTicker(lookAtRebuild)
	defer ticker.Stop()
	for {
		since := time.Now()
		records, err := s.store.Rebuilds(ctx)
		if err != nil {
			return err
		}
		r, err := s.store.Hold(ctx, records.Of(declared))
		if err == nil {
			if err := acting(ctx, since, func(ctx context.Context) error { return s.store.SwitchView(ctx, declared.Other(r.Seen())) }); err != nil {
				return err
			}
			return s.store.Revise(ctx, r, r.Noted())
		}
		if !errors.Is(err, readmodel.ErrHeld) && !errors.Is(err, readmodel.ErrRevised) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}
