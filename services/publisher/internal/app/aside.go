package app

import (
	"context"
	"slices"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/lease"
)

// misfitError is a halt because this replica's own configuration is not that of the
// stream, as its record and checkpoint have it. Another replica's may be: so it
// leaves the lease to others, and takes it again only when it fits. Where none does,
// each has taken it once, and all wait: nothing goes round among them.
type misfitError struct{ *changestream.HaltError }

func (e *misfitError) Unwrap() error { return e.HaltError }

// fits returns a *misfitError where the configuration is not that of the stream.
func (a *App) fits(record checkpoint.Record, kept checkpoint.Checkpoint, origin checkpoint.Origin) error {
	if other := record.Source.OtherCluster(origin); other != "" {
		return &misfitError{halt(changestream.SourceChanged, "%s", other)}
	}
	if others := a.refuseOtherSettings(record, kept); others != nil {
		return &misfitError{others}
	}
	options, err := a.config.stream(a.source).Fingerprint()
	if err != nil {
		return err
	}
	if err := kept.Under(options); err != nil {
		return &misfitError{&changestream.HaltError{Reason: changestream.OptionsChanged, Err: err}}
	}
	return nil
}

// standAgain lets a replica that stands aside take part again once it fits: the
// record was changed by a command, or by a leader, or the source is the right one.
func (a *App) standAgain(ctx context.Context, found kept) {
	origin, err := a.config.stream(a.source).Identify(ctx)
	if err != nil {
		a.log.Debug().Err(err).Msg("source not identified, standing aside as before")
		return
	}
	why := a.fits(found.record, found.checkpoint, origin)
	a.board.standAside(why)
	if why == nil {
		a.board.gapsAre(nil, nil)
		a.log.Info().Msg("the settings are those of the stream, standing for election again")
	}
}

// aside returns the partitions that are left to other instances: those that this
// one stands aside from, and, where there are any, those whose records say that it
// would. Each is tried by somebody all the same where it is so for all instances.
func (a *App) aside(ctx context.Context) []int {
	if !slices.ContainsFunc(a.parts, func(part *App) bool { return part.board.aside() != nil }) {
		return nil
	}
	origin, err := a.config.stream(a.source).Identify(ctx)
	known := err == nil
	var aside []int
	for i, part := range a.parts {
		if part.board.aside() != nil || known && part.elector.State().Role != lease.Leader && part.would(ctx, origin) {
			aside = append(aside, i)
		}
	}
	return aside
}

// would reports whether this partition is known to be none that the configuration
// fits, without leading it.
func (a *App) would(ctx context.Context, origin checkpoint.Origin) bool {
	found, err := a.read(ctx)
	return err == nil && a.fits(found.record, found.checkpoint, origin) != nil
}
