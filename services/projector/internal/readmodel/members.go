package readmodel

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/projector/internal/projection"
)

// Member is a projector of the group that has not said that it stops.
type Member struct {
	Instance string `bson:"instance" json:"instance"`
	// Lives says that it has been heard of within the time that a process may be
	// silent; otherwise it was killed, or cannot reach the database.
	Lives bool `bson:"lives" json:"lives"`
	// HeardOf is when it last said that it lives, by the server's clock.
	HeardOf time.Time `bson:"heartbeatAt" json:"heard_of_at"`
	// Progress is how far its projections were then; nil where an older release runs.
	Progress []Progress `bson:"progress" json:"-"`
}

// Members are the group's projectors, by instance: those that live, and those that fell
// silent within the last day, unless another process of the instance lives: it was begun in
// the place of the one that was killed.
func (s *Store) Members(ctx context.Context) ([]Member, error) {
	silentFor := bson.D{{Key: "$subtract", Value: bson.A{"$$NOW", "$heartbeatAt"}}}
	cursor, err := s.own(projection.Processes).Aggregate(ctx, mongo.Pipeline{
		{{Key: "$match", Value: bson.D{{Key: "heartbeatAt", Value: bson.D{{Key: "$type", Value: "date"}}}, {Key: "stoppedAt", Value: nil}}}},
		{{Key: "$match", Value: bson.D{{Key: "$expr", Value: bson.D{{Key: "$lt", Value: bson.A{silentFor, (24 * time.Hour).Milliseconds()}}}}}}},
		{{Key: "$sort", Value: bson.D{{Key: "instance", Value: 1}, {Key: "heartbeatAt", Value: 1}}}},
		{{Key: "$project", Value: bson.D{
			{Key: "instance", Value: 1},
			{Key: "heartbeatAt", Value: 1},
			{Key: "progress", Value: 1},
			{Key: "lives", Value: bson.D{{Key: "$lt", Value: bson.A{silentFor, deadAfter.Milliseconds()}}}},
		}}},
	})
	if err != nil {
		return nil, fmt.Errorf("read the projectors in %q: %w", projection.Processes, err)
	}
	members := []Member{}
	if err := cursor.All(ctx, &members); err != nil {
		return nil, fmt.Errorf("read the projectors in %q: %w", projection.Processes, err)
	}
	lives := map[string]bool{}
	for i := range members {
		lives[members[i].Instance] = lives[members[i].Instance] || members[i].Lives
	}
	return slices.DeleteFunc(members, func(m Member) bool { return !m.Lives && lives[m.Instance] }), nil
}
