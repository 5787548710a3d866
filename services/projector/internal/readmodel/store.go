package readmodel

import (
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/projector/internal/projection"
)

// Store is a read database: the ports that messages are delivered to, each with the
// collections that it alone writes, and what is kept beside them.
type Store struct {
	*database
	Writes            *Writes
	Halts             *Halts
	Parking           *Parking
	Parked            *Parked
	AggregateVersions *AggregateVersions
	Comparison        *Comparison
	Skipped           *Skipped

	config Config
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

// New returns the store in a database.
func New(client *mongo.Client, cfg Config) *Store {
	if cfg.Ended == nil {
		cfg.Ended = func(int) {}
	}
	if cfg.WentBack == nil {
		cfg.WentBack = func() {}
	}
	d := newDatabase(client, cfg)
	s := &Store{database: d, config: cfg, deployed: &atomic.Pointer[time.Time]{}}
	s.Skipped = &Skipped{database: d}
	s.Halts = &Halts{database: d, marked: cfg.Marked, skipped: s.Skipped}
	s.Parking = &Parking{database: d, halts: s.Halts}
	s.Writes = newWrites(d, s.Parking)
	s.Parked = &Parked{database: d, halts: s.Halts, writes: s.Writes, skipped: s.Skipped, room: newRoom(cfg.ParkedBytes)}
	s.AggregateVersions = &AggregateVersions{database: d, halts: s.Halts, marked: cfg.Marked}
	s.Comparison = &Comparison{database: d, writes: s.Writes, halts: s.Halts}
	return s
}
