package readmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/reply"
)

// The server's codes for a role that may not do something, for a collection that
// is there already, and for an index that is there with other options.
const (
	unauthorized         = 13
	namespaceExists      = 48
	indexOptionsConflict = 85
)

// ErrOtherExpiry means that an index is there and removes documents after
// another time. It does so until somebody drops it.
var ErrOtherExpiry = errors.New("an index keeps documents for another time: drop it, and run projector setup")

// ownCollections are those that the projector keeps beside the read models.
func (s *Store) ownCollections() []string {
	var own []string
	for _, name := range projection.GroupCollections() {
		own = append(own, projection.OfGroup(name, s.group))
	}
	if s.group != "" {
		own = append(own, projection.Positions)
	}
	return append(own, projection.SharedCollections()...)
}

// expiry is an index that removes documents after a time.
type expiry struct {
	collection, field, name string
	keep                    time.Duration
}

// tombstones is the name of the index that removes the tombstones of a read collection.
const tombstones = "tombstones"

// keepProcesses is how long a process is known after its last word.
const keepProcesses = 24 * time.Hour

// keepEnded is how long the record of a skipped event stays once the event is applied.
const keepEnded = 24 * time.Hour

// expiries are the indexes that remove tombstones and what is known of discarded
// events after keep, and what is known of processes, and of skipped events that were
// applied, after a day.
func (s *Store) expiries(collections []string, keep time.Duration) []expiry {
	indexes := []expiry{
		{projection.OfGroup(projection.Processes, s.group), "heartbeatAt", "old", keepProcesses},
		{projection.OfGroup(projection.Attempts, s.group), "at", "old", keepProcesses},
		{projection.OfGroup(projection.Positions, s.group), "discardedAt", "discarded", keep},
		{projection.OfGroup(projection.SkippedEvents, s.group), ended, "ended", keepEnded},
	}
	for _, name := range collections {
		indexes = append(indexes, expiry{name, bookkeeping + ".deletedAt", tombstones, keep})
	}
	return indexes
}

func (e expiry) seconds() int32 { return int32(min(e.keep/time.Second, 1<<31-1)) }

// EnsureIndexes creates the indexes. It returns false when the role may not
// create them: then all that they remove stays until Setup was called with a role
// that may, which costs space and nothing else. ErrOtherExpiry where one is there
// with another time.
func (s *Store) EnsureIndexes(ctx context.Context, collections []string, keep time.Duration) (bool, error) {
	err := s.createIndexes(ctx, collections, keep)
	if reply.Has(err, unauthorized) {
		return false, nil
	}
	return err == nil, err
}

// Needed are the collections of the read models and the projector's own.
func (s *Store) Needed(collections []string) []string {
	return slices.Concat(s.ownCollections(), collections)
}

// Setup creates the collections, those of the read models and the projector's
// own, and the indexes, with a role that may. It may be called again.
func (s *Store) Setup(ctx context.Context, collections []string, keep time.Duration) error {
	for _, name := range s.Needed(collections) {
		if err := s.db.CreateCollection(ctx, name); err != nil && !reply.Has(err, namespaceExists) {
			return fmt.Errorf("create collection %q in %q: %w", name, s.db.Name(), err)
		}
	}
	return s.createIndexes(ctx, collections, keep)
}

func (s *Store) createIndexes(ctx context.Context, collections []string, keep time.Duration) error {
	var conflicts []error
	for _, index := range s.expiries(collections, keep) {
		_, err := s.db.Collection(index.collection).Indexes().CreateOne(ctx, mongo.IndexModel{
			Keys:    bson.D{{Key: index.field, Value: 1}},
			Options: options.Index().SetName(index.name).SetSparse(true).SetExpireAfterSeconds(index.seconds()),
		})
		if err != nil {
			err = fmt.Errorf("create index %q of %q: %w", index.name, index.collection, err)
		}
		switch {
		case reply.Has(err, indexOptionsConflict):
			conflicts = append(conflicts, fmt.Errorf("%w: %w", ErrOtherExpiry, err))
		case err != nil:
			return err
		}
	}
	if err := s.Skipped.createIndex(ctx); err != nil {
		return err
	}
	return errors.Join(conflicts...)
}

// IsUnauthorized tells whether an error is about a right that the role lacks.
func IsUnauthorized(err error) bool { return reply.Has(err, unauthorized) }
