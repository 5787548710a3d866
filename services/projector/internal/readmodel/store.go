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
}

var (
	_ delivery.Store            = (*Store)(nil)
	_ delivery.Parking          = (*Store)(nil)
	_ delivery.HaltedAggregates = (*Store)(nil)
)

// New returns the store in a database. subscription is noted with parked messages.
func New(client *mongo.Client, database, subscription string) *Store {
	return &Store{
		db: client.Database(database, options.Database().
			SetWriteConcern(writeconcern.Majority()).
			SetReadConcern(readconcern.Majority()).
			SetReadPreference(readpref.Primary())),
		subscription: subscription,
	}
}

// Ping asks the primary for an answer.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.db.Client().Ping(ctx, readpref.Primary()); err != nil {
		return fmt.Errorf("reach the read database: %w", err)
	}
	return nil
}

// Write implements delivery.Store. Writes keep their order within a collection.
func (s *Store) Write(ctx context.Context, writes []projection.Write) ([]delivery.Outcome, error) {
	outcomes := make([]delivery.Outcome, len(writes))
	var done map[string]bool
	for i := range writes {
		collection := writes[i].Collection
		if done[collection] {
			continue
		}
		p := &pass{collection: s.db.Collection(collection), writes: writes, outcomes: outcomes, fold: adjacent}
		for k := i; k < len(writes); k++ {
			if writes[k].Collection == collection {
				p.pending = append(p.pending, k)
			}
		}
		if err := p.run(ctx); err != nil {
			return outcomes, err
		}
		if len(p.pending) == len(writes) {
			break
		}
		if done == nil {
			done = map[string]bool{}
		}
		done[collection] = true
	}
	return outcomes, nil
}
