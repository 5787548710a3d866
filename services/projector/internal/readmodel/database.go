package readmodel

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"changerelay/services/projector/internal/projection"
)

// database is what all parts of a store share: the read database, the names in it, and
// transactions.
type database struct {
	db    *mongo.Database
	feed  Feed
	group string
	parts []projection.Part // nil where not known
	looks looks
	ended func(transactions int)
}

func newDatabase(client *mongo.Client, cfg Config) *database {
	return &database{
		db: client.Database(cfg.Database, options.Database().
			SetWriteConcern(writeconcern.Majority()).
			SetReadConcern(readconcern.Majority()).
			SetReadPreference(readpref.Primary())),
		feed:  cfg.Feed,
		group: cfg.Group,
		parts: cfg.Projections,
		ended: cfg.Ended,
	}
}

// own is one of the group's own collections.
func (d *database) own(name string) *mongo.Collection {
	return d.db.Collection(projection.OfGroup(name, d.group))
}

func (d *database) there(ctx context.Context, collection string, filter bson.D) (bool, error) {
	err := d.db.Collection(collection).FindOne(ctx, filter).Err()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look up a position in %q: %w", collection, err)
	}
	return true, nil
}

// Ping asks the primary for an answer.
func (d *database) Ping(ctx context.Context) error {
	if err := d.db.Client().Ping(ctx, readpref.Primary()); err != nil {
		return fmt.Errorf("reach the read database: %w", err)
	}
	return nil
}
