package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/settings"
)

// setUp creates what the projector needs in the read database, so that its own
// role need not be allowed to.
func setUp(ctx context.Context, stdout, stderr io.Writer) error {
	cfg, projections, err := LoadConfig()
	if err != nil {
		settings.Report(stderr, "projector", err)
		return ErrUsage
	}
	return onReadDatabase(ctx, &cfg, projections, func(store *readmodel.Store) error {
		if err := store.Setup(ctx, projections.Collections(), cfg.TombstoneTTL); err != nil {
			return err
		}
		for _, p := range projections {
			if version, is := projection.VersionOf(p); is {
				if err := store.Present(ctx, &version); err != nil {
					return err
				}
			}
		}
		return json.NewEncoder(stdout).Encode(struct {
			Database string `json:"read_database"`
			Ready    bool   `json:"ready"`
		}{cfg.Database, true})
	})
}

// onReadDatabase runs a command on the read database. Its error has no secrets.
func onReadDatabase(ctx context.Context, cfg *Config, projections projection.Projections, command func(*readmodel.Store) error) error {
	redact := newRedactor(cfg).text
	client, err := mongo.Connect(options.Client().ApplyURI(cfg.MongoURI.Reveal()).SetTimeout(cfg.MongoTimeout))
	if err != nil {
		return errors.New("open the read database: " + redact(err.Error()))
	}
	if err = command(readmodel.New(client, cfg.readModel(projections))); err != nil {
		err = errors.New(redact(err.Error()))
	}
	if closeErr := client.Disconnect(context.WithoutCancel(ctx)); closeErr != nil {
		err = errors.Join(err, fmt.Errorf("close the read database: %w", closeErr))
	}
	return err
}
