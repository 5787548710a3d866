package app

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/settings"
)

// readConfig is what commands that look into the read database need.
type readConfig struct {
	MongoURI     settings.Secret `envconfig:"READMODEL_MONGODB_URI" required:"true" desc:"MongoDB connection string of the read models"`
	Database     string          `envconfig:"READMODEL_DATABASE" required:"true" desc:"database of the read models"`
	MongoTimeout time.Duration   `envconfig:"READMODEL_TIMEOUT" default:"15s" desc:"longest time for one MongoDB operation"`
}

// listParked prints the parked messages as JSON, one a line.
func listParked(ctx context.Context, stdout, stderr io.Writer) error {
	var cfg readConfig
	if err := settings.Load(&cfg, nil); err != nil {
		settings.Report(stderr, "projector", err)
		return ErrUsage
	}
	redact := newRedactor(&Config{MongoURI: cfg.MongoURI}).text
	client, err := mongo.Connect(options.Client().ApplyURI(cfg.MongoURI.Reveal()).SetTimeout(cfg.MongoTimeout))
	if err != nil {
		return errors.New("open the read database: " + redact(err.Error()))
	}
	lines := json.NewEncoder(stdout)
	err = readmodel.New(client, cfg.Database, "").Parked(ctx, func(p readmodel.ParkedMessage) error { return lines.Encode(p) })
	if err != nil {
		err = errors.New(redact(err.Error()))
	}
	return errors.Join(err, client.Disconnect(context.WithoutCancel(ctx)))
}
