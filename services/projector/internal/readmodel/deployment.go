package readmodel

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/projection"
)

// Deployment describes the projectors of a subscription, as the last of them to start
// noted it. A command that changes what they keep must match it. It is kept beside the
// group's processes, and stays when they have gone.
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
	fields, err := s.deployedBy(startedBy)
	if err != nil {
		return err
	}
	for i := range fields {
		fields[i].Value = literal(fields[i].Value)
	}
	// Later than whatever was noted before, also where clocks are not alike.
	later := bson.D{{Key: "$max", Value: bson.A{"$$NOW", bson.D{{Key: "$add", Value: bson.A{"$startedAt", 1}}}}}}
	fields = append(fields, bson.E{Key: "startedAt", Value: later})
	var noted Deployment
	err = s.own(projection.Processes).FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: s.deployment()}}, mongo.Pipeline{{{Key: "$set", Value: fields}}},
		options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After)).Decode(&noted)
	if err != nil {
		return fmt.Errorf("note the deployment in %q: %w", projection.Processes, err)
	}
	s.deployed.Store(&noted.StartedAt)
	return nil
}

// redeploy notes again what Deploy has noted, where that is lost or is older: it was
// restored. What a replica has noted that started later stays. It tells whether it
// has.
func (s *Store) redeploy(ctx context.Context, startedBy string) (bool, error) {
	at := s.deployed.Load()
	if at == nil {
		return false, nil
	}
	fields, err := s.deployedBy(startedBy)
	if err != nil {
		return false, err
	}
	fields = append(fields, bson.E{Key: "startedAt", Value: *at})
	result, err := s.own(projection.Processes).UpdateOne(ctx,
		bson.D{{Key: "_id", Value: s.deployment()}, {Key: "startedAt", Value: bson.D{{Key: "$lt", Value: *at}}}},
		bson.D{{Key: "$set", Value: fields}}, options.UpdateOne().SetUpsert(true))
	if mongo.IsDuplicateKeyError(err) { // as old, or newer
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("note the deployment in %q: %w", projection.Processes, err)
	}
	return result.MatchedCount+result.UpsertedCount > 0, nil
}

func (s *Store) deployment() deployment { return deployment{s.feed.Topic, s.feed.Subscription} }

// deployedBy is what is noted of a deployment, but for when.
func (s *Store) deployedBy(startedBy string) (bson.D, error) {
	var fields bson.D
	raw, err := bson.Marshal(Deployment{Topic: s.feed.Topic, Subscription: s.feed.Subscription, Projections: s.parts, OnGap: s.config.OnGap, StartedBy: startedBy})
	if err == nil {
		err = bson.Unmarshal(raw, &fields)
	}
	if err != nil {
		return nil, fmt.Errorf("note the deployment: %w", err)
	}
	return slices.DeleteFunc(fields, func(e bson.E) bool { return e.Key == "startedAt" }), nil
}

// Deployments are those of the store's group, the latest first.
func (s *database) Deployments(ctx context.Context) ([]Deployment, error) {
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
func (s *Parking) followers(eventType string) []string {
	if s.parts == nil {
		return nil
	}
	return projection.Followers(s.parts, eventType)
}
