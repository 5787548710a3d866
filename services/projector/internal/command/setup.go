package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/cli"
	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/rebuild"
)

// setUp creates what the projector needs in the read database, so that its own
// role need not be allowed to.
func setUp(ctx context.Context, stdout io.Writer, dry bool) error {
	cfg, declared, err := config.Load(ctx)
	if err != nil {
		return cli.Misconfigured(err)
	}
	return onReadDatabase(ctx, &cfg, declared, func(db *database) error {
		store, projections := db.store, db.projections
		if dry {
			return json.NewEncoder(stdout).Encode(struct {
				Database    string   `json:"read_database"`
				DryRun      bool     `json:"dry_run"`
				Collections []string `json:"collections"`
				Views       []string `json:"views"`
			}{cfg.Database, true, store.Needed(projections.Collections()), views(projections)})
		}
		if err := store.CheckOwner(ctx, projections.Collections()); err != nil {
			return err
		}
		if err := store.CheckShapes(ctx); err != nil {
			return err
		}
		if _, err := store.CheckShardKeys(ctx, projections.Collections()); err != nil {
			return err
		}
		if err := store.Setup(ctx, projections.Collections(), cfg.TombstoneTTL); err != nil {
			return err
		}
		unchecked, err := present(ctx, store, projections)
		if err != nil {
			return err
		}
		return json.NewEncoder(stdout).Encode(struct {
			Database string `json:"read_database"`
			Ready    bool   `json:"ready"`
			// Unchecked are views that were there, and that the role may not look at.
			Unchecked []string `json:"views_not_checked,omitempty"`
		}{cfg.Database, true, unchecked})
	})
}

// present makes what readers use, and returns the names of the views that were
// there and could not be looked at. A view of an older release shows what is
// deleted, so it takes a role that may look (listCollections) and mend (collMod).
func present(ctx context.Context, store *readmodel.Store, projections projection.Projections) (unchecked []string, err error) {
	var unseen []error
	for _, view := range declaredViews(projections) {
		made, err := store.EnsureView(ctx, view)
		if errors.Is(err, readmodel.ErrUnseen) {
			unseen = append(unseen, err)
			continue
		}
		if err != nil {
			return nil, err
		}
		if made {
			continue
		}
		err = store.Refresh(ctx, view)
		switch {
		case readmodel.IsUnauthorized(err):
			unchecked = append(unchecked, view.Name)
		case err != nil:
			return nil, err
		}
	}
	return unchecked, errors.Join(unseen...)
}

// views are the names that readers use.
func views(projections projection.Projections) []string {
	names := []string{}
	for _, view := range declaredViews(projections) {
		names = append(names, view.Name)
	}
	return names
}

// declaredViews are what readers use.
func declaredViews(projections projection.Projections) (declared []projection.View) {
	for _, p := range projections {
		declared = append(declared, projection.Views(p)...)
	}
	return declared
}

// database is the read database that a command works on.
type database struct {
	store *readmodel.Store
	// projections are those of the environment with the versions that rebuilds have given
	// them, or without where records cannot be read.
	projections projection.Projections
	records     rebuild.Records
	// unread is why the records of rebuilds cannot be read.
	unread error
}

// onReadDatabase runs a command on the read database, unless records of rebuilds cannot
// be read there. Its error has no secrets.
func onReadDatabase(ctx context.Context, cfg *config.Config, declared projection.Projections, command func(*database) error) error {
	return onAnyReadDatabase(ctx, cfg, declared, func(db *database) error {
		if db.unread != nil {
			return db.unread
		}
		return command(db)
	})
}

// onAnyReadDatabase runs a command on a read database that may not answer. Its error has
// no secrets.
func onAnyReadDatabase(ctx context.Context, cfg *config.Config, declared projection.Projections, command func(*database) error) error {
	redact := cfg.Redactor().Text
	client, err := mongo.Connect(options.Client().ApplyURI(cfg.MongoURI.Reveal()).SetAppName(readmodel.Application).SetTimeout(cfg.MongoTimeout))
	if err != nil {
		return errors.New("open the read database: " + redact(err.Error()))
	}
	db := &database{projections: declared}
	if db.records, db.unread = readmodel.New(client, cfg.ReadModel(declared)).Rebuilds(ctx); db.unread == nil {
		if db.projections, db.unread = db.records.Versions(declared); db.unread != nil {
			db.projections = declared
		}
	}
	db.store = readmodel.New(client, cfg.ReadModel(db.projections))
	if err = command(db); err != nil && !errors.Is(err, cli.ErrUsage) {
		err = errors.New(redact(err.Error()))
	}
	if closeErr := client.Disconnect(context.WithoutCancel(ctx)); closeErr != nil {
		err = errors.Join(err, fmt.Errorf("close the read database: %w", closeErr))
	}
	return err
}
