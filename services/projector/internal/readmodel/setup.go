package readmodel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// unauthorized is the server's code for a role that may not do something.
const unauthorized = 13

// Setup creates the index that removes tombstones after keep. It returns false
// when the role may not create indexes: then tombstones stay until an operator
// creates it, which costs space and nothing else.
func (s *Store) Setup(ctx context.Context, collections []string, keep time.Duration) (bool, error) {
	for _, name := range collections {
		_, err := s.db.Collection(name).Indexes().CreateOne(ctx, mongo.IndexModel{
			Keys: bson.D{{Key: bookkeeping + ".deletedAt", Value: 1}},
			Options: options.Index().SetName("tombstones").SetSparse(true).
				SetExpireAfterSeconds(int32(min(keep/time.Second, 1<<31-1))),
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
