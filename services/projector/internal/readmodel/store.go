package readmodel

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

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
	looks  *looks
	ended  func(transactions int)
	// wentBack is that of Config.
	wentBack func()
	// suspects are documents that may show that positions are lost.
	suspects *suspects
	// witnessed are documents that may show that read collections were emptied, and keep is
	// that of Config.
	witnessed *witnessed
	sources   *sources
	keep      time.Duration
	// deployed is when Deploy noted what this process is, by the server's clock.
	deployed *atomic.Pointer[time.Time]
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
	// Keep is how long tombstones are kept; 0 for ever.
	Keep time.Duration
	// ParkedBytes bounds the parked messages that redrives have in memory, all of
	// this store together; 0 for 8 MiB.
	ParkedBytes int64
	// Ended is told how many transactions of dead processes were ended, from many
	// goroutines; nil where nobody asks.
	Ended func(transactions int)
	// WentBack is told where the database has lost what a process had noted of itself:
	// it was restored from before; nil where nobody asks.
	WentBack func()
}

var (
	_ delivery.Store            = (*Store)(nil)
	_ delivery.Parking          = (*Store)(nil)
	_ delivery.HaltedAggregates = (*Store)(nil)
)

// New returns the store in a database.
func New(client *mongo.Client, cfg Config) *Store {
	if cfg.Ended == nil {
		cfg.Ended = func(int) {}
	}
	if cfg.WentBack == nil {
		cfg.WentBack = func() {}
	}
	s := &Store{
		db: client.Database(cfg.Database, options.Database().
			SetWriteConcern(writeconcern.Majority()).
			SetReadConcern(readconcern.Majority()).
			SetReadPreference(readpref.Primary())),
		feed:      cfg.Feed,
		group:     cfg.Group,
		marked:    cfg.Marked,
		parts:     cfg.Projections,
		onGap:     cfg.OnGap,
		room:      newRoom(cfg.ParkedBytes),
		looks:     &looks{},
		ended:     cfg.Ended,
		wentBack:  cfg.WentBack,
		suspects:  &suspects{found: map[string]suspect{}},
		witnessed: &witnessed{of: map[string]knownWitnesses{}},
		keep:      cfg.Keep,
		deployed:  &atomic.Pointer[time.Time]{},
	}
	s.sources = &sources{notes: s.own(projection.Positions)}
	return s
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
// documents, goes by itself, unless it depends on what they are; all else goes
// together: see joint.
func (s *Store) Write(ctx context.Context, writes []projection.Write) ([]delivery.Outcome, error) {
	outcomes, err := s.write(ctx, writes)
	// So ends a write without a transaction that waits for one.
	if hasCode(err, maxTimeExpired) && s.looks.due() {
		s.endIdle(ctx)
	}
	if isUnreachable(err) {
		err = unreachable(err)
	}
	return outcomes, err
}

func (s *Store) write(ctx context.Context, writes []projection.Write) ([]delivery.Outcome, error) {
	outcomes, all := make([]delivery.Outcome, len(writes)), make([]int, len(writes))
	for i := range all {
		all[i] = i
	}
	reads := slices.ContainsFunc(writes, func(w projection.Write) bool { return w.Complete != nil })
	if to := collections(writes, all); !reads && len(to) == 1 && len(accounts(writes, all)) == 0 {
		p := &pass{store: s, collection: s.db.Collection(to[0]), writes: writes, outcomes: outcomes, pending: all, fold: adjacent}
		return outcomes, p.run(ctx)
	}
	p := &joint{store: s, writes: writes, outcomes: outcomes, pending: all, fold: anywhere}
	return outcomes, p.run(ctx)
}
