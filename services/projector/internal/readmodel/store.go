package readmodel

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// Store is a read database.
type Store struct {
	db           *mongo.Database
	subscription string
	group        string
	marked       []string
}

// Config says what a store is for.
type Config struct {
	Database string
	// Subscription is noted with parked messages.
	Subscription string
	// Group names those projectors of the database that share halts, parked
	// messages and their watch over each other; "" is a group, too.
	Group string
	// Marked are the collections in which a document is one aggregate's own, and
	// is marked while that aggregate is halted.
	Marked []string
}

var (
	_ delivery.Store            = (*Store)(nil)
	_ delivery.Parking          = (*Store)(nil)
	_ delivery.HaltedAggregates = (*Store)(nil)
)

// New returns the store in a database.
func New(client *mongo.Client, cfg Config) *Store {
	return &Store{
		db: client.Database(cfg.Database, options.Database().
			SetWriteConcern(writeconcern.Majority()).
			SetReadConcern(readconcern.Majority()).
			SetReadPreference(readpref.Primary())),
		subscription: cfg.Subscription,
		group:        cfg.Group,
		marked:       cfg.Marked,
	}
}

// own is one of the group's own collections.
func (s *Store) own(name string) *mongo.Collection {
	return s.db.Collection(projection.OfGroup(name, s.group))
}

// Ping asks the primary for an answer.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.db.Client().Ping(ctx, readpref.Primary()); err != nil {
		return fmt.Errorf("reach the read database: %w", err)
	}
	return nil
}

// Write implements delivery.Store. Writes keep their order within a collection.
// Those whose position is in the ledger go last.
func (s *Store) Write(ctx context.Context, writes []projection.Write) ([]delivery.Outcome, error) {
	outcomes := make([]delivery.Outcome, len(writes))
	var own, keyed []int
	for i := range writes {
		if writes[i].Keyed {
			keyed = append(keyed, i)
		} else {
			own = append(own, i)
		}
	}
	for _, collection := range collections(writes, own) {
		p := &pass{
			collection: s.db.Collection(collection), writes: writes, outcomes: outcomes,
			pending: inCollection(writes, own, collection), fold: adjacent,
		}
		if err := p.run(ctx); err != nil {
			return outcomes, err
		}
	}
	return outcomes, s.keyed(ctx, writes, outcomes, keyed)
}
