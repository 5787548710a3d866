// Package stream runs one stream of changes, or one partition of it: it stands for
// election, claims the checkpoint in a term of its own, and publishes from there.
//
// A term acts only for a stream whose record, checkpoint and source belong
// together. Where they do not, it halts for an operator, and makes nothing anew in
// their place. Whatever changes the stream's state is fenced by the term.
package stream

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/partition"
	"changerelay/services/publisher/internal/patience"
	"changerelay/services/publisher/internal/redact"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/servicebus"
	"changerelay/services/publisher/internal/status"
)

// Shared is what the streams of a process have in common.
type Shared struct {
	Secrets *redact.Redactor
	Source  *mongo.Client
	State   *mongostate.Database
	Dial    servicebus.Dial
	// Closing holds the connections of terms that have ended.
	Closing *sync.WaitGroup
	Tracer  relay.Tracer // nil while traces are off
	Version string
	// Latency observes each send.
	Latency relay.Observer
}

// Stream is one stream of changes, or one partition of it: a lease, a checkpoint,
// and whatever publishes between them while this process leads.
type Stream struct {
	Shared
	config   config.Config
	log      zerolog.Logger
	elector  *lease.Elector
	holder   lease.Holder
	counters *relay.Counters
	tracker  *status.Tracker

	index int // of a partition: which one
	// whole is the stream's name, and wholeLease that of its lease, whatever
	// partition this is.
	whole, wholeLease string

	// These belong to the leading loop: how long a claim may take; the record of the stream as of the last
	// claim, when an operator had last decided, the term that was confirmed then,
	// or claimed since: a halt is none of a later one; and what was seen of resends.
	claims    patience.Patience
	record    checkpoint.Record
	decidedAt time.Time
	judged    int64
	resent    seenResends
	made      made // the mark of the stream; while it publishes, of markAside
	// learning guards the source in the record.
	learning sync.Mutex
	knows    knowledge
}

// New returns the stream of a configuration. It makes no round trip.
func New(cfg config.Config, shared Shared, log zerolog.Logger) *Stream {
	s := &Stream{Shared: shared, config: cfg, log: log, whole: cfg.StreamName, wholeLease: cfg.LeaseName, resent: seenResends{over: map[string]bool{}}}
	s.stand()
	return s
}

// Partition returns one of the partitions that the stream is split into, which
// stands for election by itself.
func (s *Stream) Partition(i int) *Stream {
	part := &Stream{
		Shared: s.Shared, config: s.config, log: s.log.With().Int("partition", i).Logger(),
		index: i, whole: s.whole, wholeLease: s.wholeLease, resent: seenResends{over: map[string]bool{}},
	}
	part.config.LeaseName = mongostate.PartitionNames(s.wholeLease, s.config.Partitions)[i]
	part.config.StreamName = mongostate.PartitionNames(s.whole, s.config.Partitions)[i]
	part.stand()
	part.tracker.Found()
	return part
}

// stand makes what the stream takes part in the election with, and what it shows.
func (s *Stream) stand() {
	s.claims = patience.Patience{Least: claimTimeout, Most: longestClaim}
	election := s.config.LeaseConfig()
	election.Eligible = func() bool { return s.tracker.Aside() == nil }
	s.holder = election.Holder
	record := s.State.Lease(s.config.LeaseName)
	s.elector = lease.New(election, record, record, s.log)
	s.counters = relay.NewCounters(s.Latency)
	s.tracker = status.NewTracker(s.config, s.Version, s.holder, s.elector, s.counters, s.Secrets)
}

// Tracker shows what the stream is doing.
func (s *Stream) Tracker() *status.Tracker { return s.tracker }

// Run stands for election and publishes while it leads, until ctx ends.
func (s *Stream) Run(ctx context.Context) error { return s.elector.Run(ctx, s.lead) }

// keeps says whether this stream carries an aggregate; nil for all.
func (s *Stream) keeps() func(aggregateID string) bool {
	if s.config.Partitions < 2 {
		return nil
	}
	return func(aggregateID string) bool { return partition.Of(aggregateID, s.config.Partitions) == s.index }
}
