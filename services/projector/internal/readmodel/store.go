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
	db     *mongo.Database
	feed   Feed
	group  string
	marked []string
	parts  []projection.Part // nil where not known
	onGap  string
	room   *room
}

// Config says what a store is for.
type Config struct {
	Database string
	// Feed is noted with parked messages, and names the deployment.
	Feed Feed
	// Group names those projectors of the database that share halts, parked
	// messages and their watch over each other; "" is a group, too.
	Group string
	// Marked are the collections in which a document is one aggregate's own, and
	// is marked while that aggregate is halted.
	Marked []string
	// Projections are those of the deployment; which of them follow a parked
	// message is noted with it.
	Projections []projection.Part
	// OnGap is what the deployment does with events behind a missing version.
	OnGap string
	// ShelfBytes bounds the parked messages that redrives have in memory, all of
	// this store together; 0 for 8 MiB.
	ShelfBytes int64
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
		feed:   cfg.Feed,
		group:  cfg.Group,
		marked: cfg.Marked,
		parts:  cfg.Projections,
		onGap:  cfg.OnGap,
		room:   newRoom(cfg.ShelfBytes),
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

// Write implements delivery.Store. What goes to one collection, guarded by its
// documents, goes by itself; all else goes together: see joint.
func (s *Store) Write(ctx context.Context, writes []projection.Write) ([]delivery.Outcome, error) {
	outcomes, err := s.write(ctx, writes)
	if isUnreachable(err) {
		err = fmt.Errorf("%w: %w", delivery.ErrUnreachable, err)
	}
	return outcomes, err
}

func (s *Store) write(ctx context.Context, writes []projection.Write) ([]delivery.Outcome, error) {
	outcomes, all := make([]delivery.Outcome, len(writes)), make([]int, len(writes))
	for i := range all {
		all[i] = i
	}
	if to := collections(writes, all); len(to) == 1 && len(accounts(writes, all)) == 0 {
		p := &pass{collection: s.db.Collection(to[0]), writes: writes, outcomes: outcomes, pending: all, fold: adjacent}
		return outcomes, p.run(ctx)
	}
	p := &joint{store: s, writes: writes, outcomes: outcomes, pending: all, fold: anywhere}
	return outcomes, p.run(ctx)
}
