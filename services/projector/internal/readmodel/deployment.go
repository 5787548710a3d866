package readmodel

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/projection"
)

// Deployment is what the projectors of a subscription are, as the last of them
// to start has noted. Whoever changes what they keep must be the same. It stands
// beside the group's processes, and stays when they have gone.
type Deployment struct {
	Topic        string            `bson:"topic"`
	Subscription string            `bson:"subscription"`
	Projections  []projection.Part `bson:"projections"`
	// OnGap is what becomes of events behind a missing version; "" where an older
	// release has started.
	OnGap     string    `bson:"onGap"`
	StartedBy string    `bson:"startedBy"`
	StartedAt time.Time `bson:"startedAt"`
}

// deployment is the key of a deployment.
type deployment struct {
	Topic        string `bson:"topic"`
	Subscription string `bson:"subscription"`
}

// Deploy notes what the projectors of the store's subscription are from now on.
func (s *Store) Deploy(ctx context.Context, startedBy string) error {
	return s.deploy(ctx, "$set", startedBy)
}

func (s *Store) deployment() deployment { return deployment{s.feed.Topic, s.feed.Subscription} }

// deploy notes it with an operator: $set, or $setOnInsert.
func (s *Store) deploy(ctx context.Context, operator, startedBy string) error {
	d := Deployment{s.feed.Topic, s.feed.Subscription, s.parts, s.onGap, startedBy, time.Now()}
	_, err := s.own(projection.Processes).UpdateOne(ctx, bson.D{{Key: "_id", Value: s.deployment()}}, bson.D{{Key: operator, Value: d}}, options.UpdateOne().SetUpsert(true))
	if err != nil {
		return fmt.Errorf("note the deployment in %q: %w", projection.Processes, err)
	}
	return nil
}

// Deployments are those of the store's group, the latest first.
func (s *Store) Deployments(ctx context.Context) ([]Deployment, error) {
	cursor, err := s.own(projection.Processes).Find(ctx, bson.D{{Key: "startedBy", Value: bson.D{{Key: "$exists", Value: true}}}},
		options.Find().SetSort(bson.D{{Key: "startedAt", Value: -1}}))
	if err != nil {
		return nil, fmt.Errorf("read the deployments in %q: %w", projection.Processes, err)
	}
	var all []Deployment
	if err := cursor.All(ctx, &all); err != nil {
		return nil, fmt.Errorf("read the deployments in %q: %w", projection.Processes, err)
	}
	return all, nil
}

// followers are the names of the projections that follow a type of events; nil
// where the store was not told of projections.
func (s *Store) followers(eventType string) []string {
	if s.parts == nil {
		return nil
	}
	return projection.Followers(s.parts, eventType)
}
