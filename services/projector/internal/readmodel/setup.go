package readmodel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/projection"
)

// unauthorized is the server's code for a role that may not do something.
const unauthorized = 13

// expiry is an index that removes documents after a time.
type expiry struct {
	collection, field, name string
	keep                    time.Duration
}

// keepProcesses is how long a process is known after its last word.
const keepProcesses = 24 * time.Hour

// Setup creates the indexes that remove tombstones after keep, and what is known
// of processes after a day. It returns false when the role may not create
// indexes: then all that stays until an operator creates them, which costs space
// and nothing else.
func (s *Store) Setup(ctx context.Context, collections []string, keep time.Duration) (bool, error) {
	indexes := []expiry{
		{projection.Processes, "heartbeatAt", "old", keepProcesses},
		{projection.Attempts, "at", "old", keepProcesses},
	}
	for _, name := range collections {
		indexes = append(indexes, expiry{name, bookkeeping + ".deletedAt", "tombstones", keep})
	}
	for _, index := range indexes {
		name := index.collection
		_, err := s.db.Collection(name).Indexes().CreateOne(ctx, mongo.IndexModel{
			Keys: bson.D{{Key: index.field, Value: 1}},
			Options: options.Index().SetName(index.name).SetSparse(true).
				SetExpireAfterSeconds(int32(min(index.keep/time.Second, 1<<31-1))),
		})
		if e, ok := errors.AsType[mongo.ServerError](err); ok && e.HasErrorCode(unauthorized) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("create index of %q: %w", name, err)
		}
	}
	return true, nil
}
